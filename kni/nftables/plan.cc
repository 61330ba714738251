#include "kni/nftables/plan.h"

#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "kni/nftables/layout.h"
#include "kni/nftables/room.h"

namespace sluice::kni::nft {
namespace {

template <class Map>
const typename Map::mapped_type* find(const Map& map, const typename Map::key_type& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

class Planner {
 public:
  Planner(const Ruleset& before, const Ruleset& after, Known known)
      : before_(before), after_(after), known_(known) {
    plan_.family = after.family;
  }

  Plan make() {
    plan_sets();
    plan_chains();
    plan_elements();
    return std::move(plan_);
  }

 private:
  /// A set whose shape is another is made anew; then no rule may hold the old one.
  void plan_sets() {
    for (const auto& [name, spec] : before_.sets) {
      if (gone(name)) {
        plan_.deleted_sets.push_back(&name);
        remade_ = remade_ || after_.sets.contains(name);
        if (!spec.key.empty()) {
          plan_.flushed.push_back(&name);  // ours: its verdicts may name chains that go as well
        }
      } else if (known_ == Known::kNone && spec.kind != SetSpec::Kind::kTimeoutSet) {
        plan_.flushed.push_back(&name);
      }
    }
    for (const auto& [name, spec] : after_.sets) {
      if (!before_.sets.contains(name) || gone(name)) {
        plan_.new_sets.emplace_back(&name, &spec);
      }
    }
  }

  void plan_chains() {
    for (const auto& [name, chain] : before_.chains) {
      const Chain* wanted = find(after_.chains, name);
      const bool stays = wanted != nullptr && wanted->hook == chain.hook;
      const bool rewritten = !stays || remade_ || wanted->rules != chain.rules;
      if (rewritten && !chain.rules.empty()) {
        plan_.emptied.push_back(&name);
      }
      if (!stays) {
        plan_.deleted_chains.push_back(&name);
      }
    }
    for (const auto& [name, chain] : after_.chains) {
      const Chain* present = find(before_.chains, name);
      const bool stays = present != nullptr && present->hook == chain.hook;
      if (!stays) {
        plan_.new_chains.emplace_back(&name, &chain);
      }
      const bool rewritten = !stays || remade_ || present->rules != chain.rules;
      if (rewritten && !chain.rules.empty()) {
        plan_.filled.emplace_back(&name, &chain);
      }
    }
  }

  void plan_elements() {
    static const Elements kNone;
    for (const auto& [set, elements] : before_.elements) {
      const Elements* wanted = find(after_.elements, set);
      if (gone(set)) {
        continue;  // goes with its set
      }
      add(plan_.removed, set, elements, wanted != nullptr ? *wanted : kNone);
    }
    for (const auto& [set, elements] : after_.elements) {
      const Elements* present = gone(set) ? nullptr : find(before_.elements, set);
      add(plan_.added, set, elements, present != nullptr ? *present : kNone);
    }
  }

  /// A part of a rule set does not name the node's sets.
  [[nodiscard]] const SetSpec* spec_of(const std::string& set) const {
    for (const auto* sets : {&after_.sets, &before_.sets, &node_sets()}) {
      if (const SetSpec* spec = find(*sets, set)) {
        return spec;
      }
    }
    return nullptr;
  }

  /// What is there of this name is not wanted, or not so, or too small.
  [[nodiscard]] bool gone(const std::string& set) const {
    const SetSpec* present = find(before_.sets, set);
    const SetSpec* wanted = find(after_.sets, set);
    const Elements* elements = find(after_.elements, set);
    const std::size_t count = elements != nullptr ? elements->size() : 0;
    return present != nullptr && (wanted == nullptr || !wanted->is_like(*present) ||
                                  !fits(count, present->size));
  }

  /// Elements that `other` has not, or has with another value.
  void add(std::vector<Plan::ElementChange>& to, const std::string& set, const Elements& elements,
           const Elements& other) {
    Plan::ElementChange change;
    change.set = &set;
    change.spec = spec_of(set);
    change.elements.reserve(other.empty() ? elements.size() : 0);
    std::unordered_map<std::string_view, const ElementValue*> others;
    for (const auto& [key, value] : other) {
      others.emplace(key, &value);
    }
    for (const auto& element : elements) {
      const ElementValue* const* there = find(others, element.first);
      if (there == nullptr || !(**there == element.second)) {
        change.elements.push_back(&element);
      }
    }
    if (!change.elements.empty() && change.spec != nullptr) {
      to.push_back(std::move(change));
    }
  }

  const Ruleset& before_;
  const Ruleset& after_;
  const Known known_;
  Plan plan_;
  bool remade_ = false;
};

}  // namespace

Plan take_first(Plan& plan) {
  Plan first;
  first.family = plan.family;
  for (const std::string* gone : plan.deleted_sets) {
    for (const auto& [name, spec] : plan.new_sets) {
      if (*name == *gone) {
        return first;
      }
    }
  }
  std::set<std::string> early;
  Plan::Named<Chain> late;
  for (const auto& chain : plan.new_chains) {
    if (chain.second->hook) {
      late.push_back(chain);
    } else {
      first.new_chains.push_back(chain);
      early.insert(*chain.first);
    }
  }
  if (early.empty()) {
    return first;
  }
  plan.new_chains = std::move(late);
  first.new_sets = std::exchange(plan.new_sets, {});
  Plan::Named<Chain> rest;
  for (const auto& chain : plan.filled) {
    (early.contains(*chain.first) ? first.filled : rest).push_back(chain);
  }
  plan.filled = std::move(rest);
  return first;
}

Plan make_plan(const Ruleset& before, const Ruleset& after, Known known) {
  return Planner(before, after, known).make();
}

}  // namespace sluice::kni::nft
