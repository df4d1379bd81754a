// The steps between hosts, executed on values: the value of each host at the end, the order in which it was combined,
// and that both sides of every exchange expect the same.
#include "runtime/src/collective/canonical_tree.h"

#include <bit>
#include <deque>
#include <map>
#include <set>
#include <string>

#include "support/catch.h"

using namespace ddl::runtime;

namespace {

/// A host's buffer: one text per unit, empty if its value is not known.
using Units = std::vector<std::string>;

/// Runs the steps of all hosts over queues between them, each host as far as it gets, until all have ended.
std::vector<Units> run(std::vector<Units> buffers, const std::vector<HostSteps>& steps) {
  struct Cursor {
    std::size_t step = 0;
    bool has_sent = false;
  };
  std::map<std::pair<int, int>, std::deque<Units>> wires;
  std::vector<Cursor> cursors(buffers.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t host = 0; host < buffers.size(); ++host) {
      Cursor& cursor = cursors[host];
      if (cursor.step == steps[host].size()) continue;
      const HostStep& step = steps[host][cursor.step];
      const int own = static_cast<int>(host);
      Units& buffer = buffers[host];
      if (!cursor.has_sent) {
        cursor.has_sent = moved = true;
        if (step.send.count > 0) {
          const auto begin = buffer.begin() + step.send.first;
          wires[{own, step.host}].emplace_back(begin, begin + step.send.count);
        }
      }
      if (step.recv.count > 0) {
        auto& wire = wires[{step.host, own}];
        if (wire.empty()) continue;
        const Units got = wire.front();
        wire.pop_front();
        REQUIRE(got.size() == static_cast<std::size_t>(step.recv.count));
        for (std::size_t i = 0; i < got.size(); ++i) {
          std::string& unit = buffer[static_cast<std::size_t>(step.recv.first) + i];
          switch (step.merge) {
            case Merge::kReplace: unit = got[i]; break;
            case Merge::kPeerOnRight: unit = "(" + unit + got[i] + ")"; break;
            case Merge::kPeerOnLeft: unit = "(" + got[i] + unit + ")"; break;
            case Merge::kAside: FAIL("no step keeps anything aside"); break;
          }
        }
      }
      ++cursor.step;
      cursor.has_sent = false;
      moved = true;
    }
  }
  for (std::size_t host = 0; host < buffers.size(); ++host) CHECK(cursors[host].step == steps[host].size());
  for (const auto& [ends, wire] : wires) CHECK(wire.empty());
  return buffers;
}

std::string host_letter(int host) { return std::string(1, static_cast<char>('a' + host)); }

}  // namespace

TEST_CASE("an allreduce over hosts is one tree from left to right, the same on every host") {
  const int hosts = GENERATE(range(1, 21));
  CAPTURE(hosts);
  std::vector<Units> buffers;
  std::vector<HostSteps> steps;
  for (int host = 0; host < hosts; ++host) {
    buffers.push_back({host_letter(host)});
    steps.push_back(tree_steps(hosts, host));
  }
  const auto results = run(buffers, steps);
  for (const Units& result : results) CHECK(result == results.front());
  std::string in_order, without_parentheses;
  for (int host = 0; host < hosts; ++host) in_order += host_letter(host);
  for (const char c : results.front().front()) {
    if (c != '(' && c != ')') without_parentheses += c;
  }
  CHECK(without_parentheses == in_order);
}

TEST_CASE("what a host has for another one, or for all, goes there once, over the hosts between") {
  const int hosts = GENERATE(range(1, 21));
  CAPTURE(hosts);
  using Block = std::pair<int, int>;  // from a host, for a host
  std::vector<std::vector<TreeStep>> steps;
  std::vector<std::set<Block>> held;
  for (int host = 0; host < hosts; ++host) {
    steps.push_back(gathering_steps(hosts, host));
    for (auto& blocks = held.emplace_back(); std::ssize(blocks) < hosts;)
      blocks.insert({host, static_cast<int>(blocks.size())});
    const HostSteps tree = tree_steps(hosts, host);
    CHECK(std::equal(tree.begin(), tree.end(), steps.back().begin(), steps.back().end(),
                     [](const HostStep& one, const HostStep& other) { return one == other; }));
  }
  // Messages under way, by the hosts that send and receive them.
  std::map<std::pair<int, int>, std::deque<TreeTraffic>> wires;
  std::vector<std::size_t> next(steps.size()), sent(steps.size());
  const auto blocks_of = [](const TreeTraffic& traffic) {
    std::vector<Block> blocks;
    for (const int from : traffic.from) {
      for (const int to : traffic.to) blocks.emplace_back(from, to);
    }
    return blocks;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (int host = 0; host < hosts; ++host) {
      const auto own = static_cast<std::size_t>(host);
      if (next[own] == steps[own].size()) continue;
      const TreeStep& step = steps[own][next[own]];
      if (sent[own] == next[own]) {
        for (const Block& block : blocks_of(step.sent)) CHECK(held[own].count(block) == 1);
        CHECK(blocks_of(step.sent).empty() == (step.send.count == 0));
        if (step.send.count > 0) wires[{host, step.host}].push_back(step.sent);
        ++sent[own];
        moved = true;
      }
      if (step.recv.count > 0) {
        auto& wire = wires[{step.host, host}];
        if (wire.empty()) continue;
        CHECK(wire.front() == step.received);
        for (const Block& block : blocks_of(step.received)) CHECK(held[own].insert(block).second);
        wire.pop_front();
      }
      ++next[own];
      moved = true;
    }
  }
  for (int host = 0; host < hosts; ++host) {
    const auto own = static_cast<std::size_t>(host);
    CHECK(next[own] == steps[own].size());
    for (int from = 0; from < hosts; ++from) CHECK(held[own].count({from, host}) == 1);
  }
}

TEST_CASE("the canonical tree is the documented one") {
  const auto tree = [](int hosts) {
    std::vector<Units> buffers;
    std::vector<HostSteps> steps;
    for (int host = 0; host < hosts; ++host) {
      buffers.push_back({host_letter(host)});
      steps.push_back(tree_steps(hosts, host));
    }
    return run(buffers, steps).front().front();
  };
  CHECK(tree(1) == "a");
  CHECK(tree(2) == "(ab)");
  CHECK(tree(3) == "((ab)c)");
  CHECK(tree(4) == "((ab)(cd))");
  CHECK(tree(5) == "(((ab)c)(de))");
  CHECK(tree(6) == "(((ab)(cd))(ef))");
  CHECK(tree(7) == "(((ab)(cd))((ef)g))");
  CHECK(tree(8) == "(((ab)(cd))((ef)(gh)))");
}

TEST_CASE("halving and doubling combines every unit along the canonical tree") {
  const int hosts = GENERATE(range(1, 21));
  const int units = GENERATE(0, 1, 2, 3, 7, 16, 19);
  const int root = GENERATE_COPY(range(-1, hosts));
  CAPTURE(hosts, units, root);
  std::vector<Units> buffers, wholes;
  std::vector<HostSteps> steps, whole_steps;
  int sent = 0;
  for (int host = 0; host < hosts; ++host) {
    Units& buffer = buffers.emplace_back();
    for (int unit = 0; unit < units; ++unit) buffer.push_back(host_letter(host) + std::to_string(unit));
    wholes.push_back(buffer);
    steps.push_back(halving_steps(hosts, host, units, root));
    whole_steps.push_back(HostSteps());
    for (HostStep step : tree_steps(hosts, host)) {
      for (UnitRange* range : {&step.send, &step.recv}) range->count *= units;
      whole_steps.back().push_back(step);
    }
    for (const HostStep& step : steps.back()) sent += step.send.count;
  }
  const Units wanted = run(wholes, whole_steps).front();
  const auto results = run(buffers, steps);
  for (int host = 0; host < hosts; ++host) {
    if (root < 0 || root == host) CHECK(results[static_cast<std::size_t>(host)] == wanted);
  }
  // The minimum for P hosts, plus the messages to stand-ins and back; to a root, less.
  const int numbers = static_cast<int>(std::bit_floor(static_cast<unsigned>(hosts)));
  const int stand_ins = hosts - numbers;
  const int there = (numbers - 1) * units;
  const int last = root >= 0 && root < 2 * stand_ins && root % 2 == 1 ? 1 : 0;
  if (root < 0) {
    CHECK(sent == 2 * there + 2 * stand_ins * units);
  } else {
    CHECK(sent <= 2 * there + (stand_ins + last) * units);
  }
}

TEST_CASE("around the ring every unit is combined once, ending on the host of its number") {
  const int hosts = GENERATE(range(1, 12));
  CAPTURE(hosts);
  std::vector<Units> buffers;
  std::vector<HostSteps> steps;
  for (int host = 0; host < hosts; ++host) {
    Units& buffer = buffers.emplace_back();
    for (int unit = 0; unit < hosts; ++unit) buffer.push_back(host_letter(host) + std::to_string(unit));
    HostSteps& own = steps.emplace_back();
    for (const HostSteps& round : ring_steps(hosts, host)) {
      own.insert(own.end(), round.begin(), round.end());
      for (const HostStep& step : round) {
        const int distance = (step.host - host + hosts) % hosts;
        CHECK((distance == 1 || distance == hosts - 1));
        CHECK(step.send.count + step.recv.count == 1);
      }
    }
  }
  Units wanted;
  for (int unit = 0; unit < hosts; ++unit) {
    const auto value = [&](int host) { return host_letter(host % hosts) + std::to_string(unit); };
    std::string& all = wanted.emplace_back(value(unit + 1));
    for (int host = unit + 2; host <= unit + hosts; ++host) all = "(" + all + value(host) + ")";
  }
  for (const Units& result : run(buffers, steps)) CHECK(result == wanted);
}

TEST_CASE("a broadcast over hosts reaches all of them from every root") {
  const int hosts = GENERATE(range(1, 14));
  for (int root = 0; root < hosts; ++root) {
    CAPTURE(hosts, root);
    std::vector<Units> buffers(static_cast<std::size_t>(hosts), Units{""});
    buffers[static_cast<std::size_t>(root)] = {"value"};
    std::vector<HostSteps> steps;
    for (int host = 0; host < hosts; ++host) steps.push_back(broadcast_steps(hosts, host, root));
    for (const Units& result : run(buffers, steps)) CHECK(result == Units{"value"});
  }
}

TEST_CASE("a rank that has every host's value combines them along the same tree") {
  const int hosts = GENERATE(range(1, 21));
  CAPTURE(hosts);
  Units values;
  std::vector<Units> buffers;
  std::vector<HostSteps> steps;
  for (int host = 0; host < hosts; ++host) {
    values.push_back(host_letter(host));
    buffers.push_back({host_letter(host)});
    steps.push_back(tree_steps(hosts, host));
  }
  for (const auto& [left, right] : tree_pairs(hosts)) {
    std::string& to = values[static_cast<std::size_t>(left)];
    to = "(" + to + values[static_cast<std::size_t>(right)] + ")";
  }
  CHECK(values.front() == run(buffers, steps).front().front());
}

TEST_CASE("partners are mutual, few, and enough for every collective") {
  const int hosts = GENERATE(range(1, 40));
  CAPTURE(hosts);
  const auto is_partner = [&](int of, int host) {
    const auto partners = partner_hosts(hosts, of);
    return std::find(partners.begin(), partners.end(), host) != partners.end();
  };
  for (int own = 0; own < hosts; ++own) {
    const auto partners = partner_hosts(hosts, own);
    CHECK(static_cast<int>(partners.size()) <=
          static_cast<int>(std::bit_width(static_cast<unsigned>(hosts))));
    for (const int partner : partners) CHECK(is_partner(partner, own));
    for (const HostStep& step : halving_steps(hosts, own, 64)) CHECK(is_partner(own, step.host));
    for (int root = 0; root < hosts; ++root) {
      for (const HostStep& step : broadcast_steps(hosts, own, root)) CHECK(is_partner(own, step.host));
    }
  }
}
