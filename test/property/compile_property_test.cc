// Properties of compile over random clusters: the order of objects does not matter, incremental
// equals from scratch, every table is sound, ids are stable and never shared.
//
// SLUICE_SEED=n repeats one run; the failing seed is printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "control/compile/compiler.h"
#include "dataplane/core/fwd/diff.h"
#include "dataplane/core/fwd/invariants.h"
#include "dataplane/core/fwd/text.h"
#include "test/support/random_cluster.h"

namespace sluice {
namespace {

using compile::Compiled;
using compile::Profile;

constexpr std::uint64_t kRuns = 60;
constexpr int kStepsPerRun = 60;

std::vector<std::uint64_t> seeds() {
  if (const char* one = std::getenv("SLUICE_SEED"); one != nullptr) {
    return {std::strtoull(one, nullptr, 10)};
  }
  std::vector<std::uint64_t> out;
  for (std::uint64_t s = 1; s <= kRuns; ++s) {
    out.push_back(s);
  }
  return out;
}

std::string text_of(const compile::ReportLine& l) {
  return std::to_string(static_cast<int>(l.kind)) + " " + l.object + " " + l.field + ": " +
         l.reason;
}

std::vector<std::string> text_of(const compile::Report& report) {
  std::vector<std::string> out;
  for (const auto& line : report.lines) {
    out.push_back(text_of(line));
  }
  return out;
}

model::Delta random_change(test::RandomCluster& random) {
  model::Delta d;
  switch (random.below(8)) {
    case 0:
      d.deleted_services.push_back(random.service_name());
      break;
    case 1:
      d.deleted_slices.push_back(random.slice_name());
      break;
    case 2:
    case 3:
      d.services.push_back(random.service());
      break;
    case 4:
    case 5:
      d.slices.push_back(random.slice());
      break;
    case 6:
      d.nodes.push_back(random.node());
      break;
    default:
      d.service_cidrs.push_back(random.service_cidr());
      d.slices.push_back(random.slice());
      d.services.push_back(random.service());
      break;
  }
  return d;
}

Compiled from_scratch(const model::ClusterState& state, const compile::NodeConfig& config,
                      const compile::HostState& host) {
  compile::IdRegistry ids({});
  auto compiled = compile::compile_full(state, config, host, Profile::kNftables, ids);
  EXPECT_TRUE(compiled.has_value()) << compiled.error().message;
  return compiled ? *compiled : Compiled{};
}

/// A random cluster on a random node, compiled change by change.
struct Incremental {
  explicit Incremental(std::uint64_t seed) : random(seed) {}

  core::Result<Compiled> take(const model::ChangeSet& changes) {
    return compiler.update(state, changes, config, host);
  }
  /// A delta, or now and then a full replace by a few objects.
  model::ChangeSet change() {
    if (!random.chance(4)) {
      return model::apply(state, random_change(random));
    }
    model::ClusterState next = random.chance(50) ? state : model::ClusterState{};
    for (int i = 0; i < 6; ++i) {
      model::apply(next, random_change(random));
    }
    return model::exchange(state, next);
  }
  void expect_as_from_scratch(const Compiled& got) const {
    const Compiled wanted = from_scratch(state, config, host);
    EXPECT_EQ(core::to_text(*wanted.table), core::to_text(*got.table));
    EXPECT_EQ(wanted.health_ports, got.health_ports);
    EXPECT_EQ(text_of(wanted.report), text_of(got.report));
  }

  test::RandomCluster random;
  compile::NodeConfig config = random.config();
  compile::HostState host = random.host();
  model::ClusterState state;
  compile::IdRegistry ids{compile::IdRegistry::Limits{}};
  compile::Compiler compiler{Profile::kNftables, ids};
};

/// (printed name, protocol, family, "ip:port") -> id
using Ids =
    std::map<std::tuple<std::string, core::Protocol, core::Family, std::string>, core::EndpointId>;
Ids ids_of(const core::ForwardingTable& table) {
  Ids out;
  for (std::uint32_t i = 0; i < table.slot_limit(); ++i) {
    if (const auto* b = table.service(static_cast<core::ServiceSlot>(i)); b != nullptr) {
      for (const core::Endpoint& e : b->endpoints) {
        out[{b->name, b->protocol, b->family, core::to_string(e.address, e.port)}] = e.id;
      }
    }
  }
  return out;
}

void expect_ids_stable(const Ids& before, const Ids& after) {
  std::set<core::EndpointId> seen;
  for (const auto& [key, id] : after) {
    EXPECT_TRUE(seen.insert(id).second) << "an id is used twice";
    if (const auto old = before.find(key); old != before.end()) {
      EXPECT_EQ(old->second, id) << "the id of " << std::get<3>(key) << " changed";
    }
  }
}

// Services, slices, Nodes, ServiceCIDRs, the configuration and the host's addresses change in any
// sequence, by deltas and by full replaces.
TEST(CompileProperty, IncrementalEqualsFromScratch) {
  for (const std::uint64_t seed : seeds()) {
    SCOPED_TRACE("SLUICE_SEED=" + std::to_string(seed));
    Incremental run(seed);
    Ids last_ids;
    for (int step = 0; step < kStepsPerRun && !testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      const model::ChangeSet changes = run.change();
      run.config = run.random.chance(3) ? run.random.config() : run.config;
      run.host = run.random.chance(5) ? run.random.host() : run.host;
      const auto got = run.take(changes);
      ASSERT_TRUE(got.has_value()) << got.error().message;
      run.expect_as_from_scratch(*got);
      const auto sound = core::check_table(*got->table);
      EXPECT_TRUE(sound.has_value()) << sound.error().message;
      Ids now = ids_of(*got->table);
      expect_ids_stable(last_ids, now);
      last_ids = std::move(now);
      run.ids.release_unused(got->table->generation(),
                             [&](core::EndpointId) { return run.random.chance(50); });
    }
  }
}

TEST(CompileProperty, OrderOfObjectsDoesNotMatter) {
  for (const std::uint64_t seed : seeds()) {
    SCOPED_TRACE("SLUICE_SEED=" + std::to_string(seed));
    test::RandomCluster random(seed);
    const compile::NodeConfig config = random.config();
    const compile::HostState host = random.host();
    // Distinct names only: of two objects with one name the last wins by definition.
    model::ClusterState whole;
    for (int i = 0; i < 30; ++i) {
      model::apply(whole, random_change(random));
    }
    std::vector<model::Delta> parts;
    for (const auto& [name, s] : whole.services) {
      parts.emplace_back().services.push_back(s);
    }
    for (const auto& [name, s] : whole.slices) {
      parts.emplace_back().slices.push_back(s);
    }
    for (const auto& [name, n] : whole.nodes) {
      parts.emplace_back().nodes.push_back(n);
    }
    for (const auto& [name, c] : whole.service_cidrs) {
      parts.emplace_back().service_cidrs.push_back(c);
    }
    for (std::size_t i = parts.size(); i > 1; --i) {
      std::swap(parts[i - 1], parts[random.below(i)]);
    }
    model::ClusterState state;
    compile::IdRegistry ids({});
    compile::Compiler compiler(Profile::kNftables, ids);
    Compiled last = from_scratch(state, config, host);
    for (const model::Delta& part : parts) {
      const auto changes = model::apply(state, part);
      auto got = compiler.update(state, changes, config, host);
      ASSERT_TRUE(got.has_value()) << got.error().message;
      last = *got;
    }
    const Compiled wanted = from_scratch(whole, config, host);
    EXPECT_EQ(core::to_text(*wanted.table), core::to_text(*last.table));
    EXPECT_EQ(text_of(wanted.report), text_of(last.report));
  }
}

// Replace goes through the same door as a stream of changes.
TEST(CompileProperty, ReplaceEqualsFromScratch) {
  for (const std::uint64_t seed : seeds()) {
    SCOPED_TRACE("SLUICE_SEED=" + std::to_string(seed));
    Incremental run(seed);
    for (int round = 0; round < 8; ++round) {
      model::ClusterState next;
      for (int i = 0; i < 20; ++i) {
        model::apply(next, random_change(run.random));
      }
      const auto got = run.take(model::exchange(run.state, next));
      ASSERT_TRUE(got.has_value()) << got.error().message;
      run.expect_as_from_scratch(*got);
    }
  }
}

TEST(CompileProperty, EpochGrowsExactlyWhenADestinationLeaves) {
  for (const std::uint64_t seed : seeds()) {
    SCOPED_TRACE("SLUICE_SEED=" + std::to_string(seed));
    Incremental run(seed);
    core::TablePtr before = std::make_shared<const core::ForwardingTable>();
    for (int step = 0; step < kStepsPerRun; ++step) {
      const auto got = run.take(model::apply(run.state, random_change(run.random)));
      ASSERT_TRUE(got.has_value()) << got.error().message;
      const core::TableDiff diff = core::diff(*before, *got->table);
      const bool service_left = !diff.removed.empty();
      bool stopped_serving = false;
      for (const core::ServiceSlot slot : diff.changed) {
        const auto* old = before->service(slot);
        for (const core::Endpoint& e : old->endpoints) {
          const auto* now = got->table->service(slot)->find_endpoint(e.address, e.port);
          stopped_serving = stopped_serving || (old->protocol == core::Protocol::kUdp &&
                                                now != nullptr && e.serving && !now->serving);
        }
      }
      const bool left = service_left || !diff.departed.empty() || stopped_serving;
      EXPECT_EQ(before->epoch() + (left ? 1U : 0U), got->table->epoch()) << "step " << step;
      before = got->table;
    }
  }
}

}  // namespace
}  // namespace sluice
