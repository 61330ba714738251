#include "kni/iptables/restore_text.h"

#include <algorithm>

namespace sluice::kni::ipt {

void RestoreText::line(std::string_view a, std::string_view b, std::string_view c,
                       std::string_view d) {
  text_.append(a).append(b).append(c).append(d).push_back('\n');
}

void RestoreText::begin(Table table) {
  table_ = table;
  line("*", name_of(table));
}

void RestoreText::declare(std::string_view chain) {
  line(":", chain, " - [0:0]");
  written(chain) = 0;
}

void RestoreText::declare(const Chains& chains) {
  for (const auto& [chain, rules] : chains) {
    declare(chain);
  }
}

void RestoreText::append(const Chains& chains) {
  for (const auto& [chain, rules] : chains) {
    for (const std::string& rule : rules) {
      line("-A ", chain, " ", rule);
    }
    if (!rules.empty()) {
      std::optional<std::size_t>& written_to = written(chain);
      written_to = written_to.value_or(0) + rules.size();
      rules_[static_cast<std::size_t>(table_)] += rules.size();
    }
  }
}

void RestoreText::insert(const Hook& hook) {
  line("-I ", hook.chain, " ", hook.rule);
}

void RestoreText::take_out(std::string_view chain, std::string_view rule) {
  line("-D ", chain, " ", rule);
}

void RestoreText::flush(std::string_view chain) {
  line("-F ", chain);
  written(chain) = 0;
}

void RestoreText::remove(std::string_view chain) {
  line("-X ", chain);
  written(chain).reset();
}

void RestoreText::commit() {
  line("COMMIT");
}

void sort_for_deletion(std::vector<std::string>& chains) {
  std::sort(chains.begin(), chains.end(), [](const std::string& a, const std::string& b) {
    return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  });
}

std::string ruleset_text(const Ruleset& ruleset) {
  RestoreText out;
  for (const auto& [table, chains] :
       {std::pair(Table::kFilter, &ruleset.filter), std::pair(Table::kNat, &ruleset.nat)}) {
    out.begin(table);
    out.declare(*chains);
    out.append(*chains);
    out.commit();
  }
  return out.take();
}

std::string_view line_of(std::string_view text, std::size_t n) noexcept {
  for (; n > 1 && !text.empty(); --n) {
    const std::size_t end = text.find('\n');
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return n == 0 ? std::string_view() : text.substr(0, std::min(text.find('\n'), text.size()));
}

}  // namespace sluice::kni::ipt
