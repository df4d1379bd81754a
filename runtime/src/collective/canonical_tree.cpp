#include "runtime/src/collective/canonical_tree.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>

#include "runtime/src/common/call.h"

namespace ddl::runtime {
namespace {

constexpr UnitRange kNothing{0, 0};
constexpr UnitRange kValue{0, 1};

/// The position of a host in the tree.
class TreePosition {
 public:
  TreePosition(int hosts, int host)
      : taking_part_(static_cast<int>(std::bit_floor(static_cast<unsigned>(hosts)))),
        pairs_(hosts - taking_part_),
        host_(host) {}

  int taking_part() const { return taking_part_; }
  /// The second of a pair takes part through the first.
  bool has_stand_in() const { return host_ < 2 * pairs_ && host_ % 2 == 1; }
  bool is_stand_in() const { return host_ < 2 * pairs_ && host_ % 2 == 0; }
  int stand_in() const { return host_ - 1; }
  int stood_in_for() const { return host_ + 1; }
  /// Its number among those that take part; that of the stand-in if it has one.
  int number() const { return host_ < 2 * pairs_ ? host_ / 2 : host_ - pairs_; }
  int host_of(int number) const { return number < pairs_ ? 2 * number : number + pairs_; }
  bool is_stand_in_number(int number) const { return number < pairs_; }

 private:
  int taking_part_;
  int pairs_;
  int host_;
};

}  // namespace

HostSteps tree_steps(int hosts, int own) {
  const TreePosition position(hosts, own);
  if (position.has_stand_in()) {
    return {{position.stand_in(), kValue, kNothing, Merge::kReplace},
            {position.stand_in(), kNothing, kValue, Merge::kReplace}};
  }
  HostSteps steps;
  if (position.is_stand_in())
    steps.push_back({position.stood_in_for(), kNothing, kValue, Merge::kPeerOnRight});
  const int number = position.number();
  for (int distance = 1; distance < position.taking_part(); distance *= 2) {
    const int partner = number ^ distance;
    steps.push_back({position.host_of(partner), kValue, kValue,
                     number < partner ? Merge::kPeerOnRight : Merge::kPeerOnLeft});
  }
  if (position.is_stand_in()) steps.push_back({position.stood_in_for(), kValue, kNothing, Merge::kReplace});
  return steps;
}

std::vector<TreeStep> gathering_steps(int hosts, int own) {
  const TreePosition position(hosts, own);
  const int taking_part = position.taking_part();
  // Those with these numbers, and those for which they stand in.
  const auto hosts_of = [&](int first, int end, int distance) {
    std::vector<int> found;
    for (int number = first; number < end; number += distance) {
      found.push_back(position.host_of(number));
      if (position.is_stand_in_number(number)) found.push_back(position.host_of(number) + 1);
    }
    return found;
  };
  const auto all_but = [&](int host) {
    std::vector<int> others = hosts_of(0, taking_part, 1);
    std::erase(others, host);
    return others;
  };
  // Before the exchange over this distance a host has the values of those with the same higher bits. What it sends
  // then goes on to those that have the partner's lower bits.
  const auto traffic = [&](int from, int to, int distance) -> TreeTraffic {
    const int first = from / distance * distance;
    return {hosts_of(first, first + distance, 1), hosts_of(to % (2 * distance), taking_part, 2 * distance)};
  };
  const int number = position.number();
  std::vector<TreeStep> steps;
  int distance = 1;
  for (const HostStep& step : tree_steps(hosts, own)) {
    TreeStep& added = steps.emplace_back(TreeStep{step, {}, {}});
    if (position.has_stand_in()) {
      if (step.send.count > 0) added.sent = {{own}, all_but(own)};
      if (step.recv.count > 0) added.received = {all_but(own), {own}};
    } else if (position.is_stand_in() && step.host == position.stood_in_for()) {
      if (step.send.count > 0) added.sent = {all_but(step.host), {step.host}};
      if (step.recv.count > 0) added.received = {{step.host}, all_but(step.host)};
    } else {
      added.sent = traffic(number, number ^ distance, distance);
      added.received = traffic(number ^ distance, number, distance);
      distance *= 2;
    }
  }
  return steps;
}

HostSteps halving_steps(int hosts, int own, int units, int root) {
  const TreePosition position(hosts, own);
  const UnitRange value{0, units};
  if (position.has_stand_in()) {
    HostSteps steps{{position.stand_in(), value, kNothing, Merge::kReplace}};
    if (root < 0 || root == own) steps.push_back({position.stand_in(), kNothing, value, Merge::kReplace});
    return steps;
  }
  HostSteps steps;
  if (position.is_stand_in())
    steps.push_back({position.stood_in_for(), kNothing, value, Merge::kPeerOnRight});
  const int number = position.number();
  UnitRange kept = value;
  HostSteps back;
  for (int distance = 1; distance < position.taking_part(); distance *= 2) {
    const int partner = number ^ distance;
    const bool is_lower = number < partner;
    UnitRange first{kept.first, kept.count / 2};
    UnitRange second{kept.first + first.count, kept.count - first.count};
    if (!is_lower) std::swap(first, second);  // first is the half that this host keeps
    steps.push_back(
        {position.host_of(partner), second, first, is_lower ? Merge::kPeerOnRight : Merge::kPeerOnLeft});
    back.push_back({position.host_of(partner), first, second, Merge::kReplace});
    kept = first;
  }
  // On the way to a root, of two partners the one with the root's bit receives; the other one has nothing left to do.
  const int differs = root < 0 ? 0 : number ^ TreePosition(hosts, root).number();
  for (int distance = position.taking_part() / 2; distance > 0; distance /= 2) {
    HostStep step = back.back();
    back.pop_back();
    const bool sends = (differs & distance) != 0;
    if (root >= 0) (sends ? step.recv : step.send) = kNothing;
    steps.push_back(step);
    if (sends) return steps;
  }
  if (position.is_stand_in() && (root < 0 || root == position.stood_in_for())) {
    steps.push_back({position.stood_in_for(), value, kNothing, Merge::kReplace});
  }
  return steps;
}

std::vector<HostSteps> ring_steps(int hosts, int own) {
  const auto unit = [hosts](int number) { return UnitRange{(number + 2 * hosts) % hosts, 1}; };
  const int next = (own + 1) % hosts, before = (own + hosts - 1) % hosts;
  std::vector<HostSteps> rounds;
  for (int step = 1; step < hosts; ++step) {
    rounds.push_back({{next, unit(own - step), kNothing, Merge::kReplace},
                      {before, kNothing, unit(own - step - 1), Merge::kPeerOnLeft}});
  }
  for (int step = 0; step < hosts - 1; ++step) {
    rounds.push_back({{next, unit(own - step), kNothing, Merge::kReplace},
                      {before, kNothing, unit(own - step - 1), Merge::kReplace}});
  }
  return rounds;
}

HostSteps broadcast_steps(int hosts, int own, int root) {
  const TreePosition position(hosts, own), root_position(hosts, root);
  HostSteps steps;
  if (position.has_stand_in()) {
    if (own == root) return {{position.stand_in(), kValue, kNothing, Merge::kReplace}};
    return {{position.stand_in(), kNothing, kValue, Merge::kReplace}};
  }
  if (root_position.has_stand_in() && root_position.stand_in() == own) {
    steps.push_back({root, kNothing, kValue, Merge::kReplace});
  }
  // Numbered from the root: after step k those below 2^(k+1) have the value.
  const int from_root = position.number() ^ root_position.number();
  for (int distance = 1; distance < position.taking_part(); distance *= 2) {
    const int partner = position.host_of(position.number() ^ distance);
    if (from_root < distance) {
      steps.push_back({partner, kValue, kNothing, Merge::kReplace});
    } else if (from_root < 2 * distance) {
      steps.push_back({partner, kNothing, kValue, Merge::kReplace});
    }
  }
  if (position.is_stand_in() && position.stood_in_for() != root) {
    steps.push_back({position.stood_in_for(), kValue, kNothing, Merge::kReplace});
  }
  return steps;
}

std::vector<std::pair<int, int>> tree_pairs(int hosts) {
  std::vector<std::pair<int, int>> pairs;
  const TreePosition position(hosts, 0);
  for (int number = 0; position.is_stand_in_number(number); ++number) {
    pairs.emplace_back(position.host_of(number), position.host_of(number) + 1);
  }
  for (int distance = 1; distance < position.taking_part(); distance *= 2) {
    for (int number = 0; number < position.taking_part(); number += 2 * distance) {
      pairs.emplace_back(position.host_of(number), position.host_of(number + distance));
    }
  }
  return pairs;
}

std::vector<int> partner_hosts(int hosts, int own) {
  std::vector<int> partners;
  for (const HostStep& step : tree_steps(hosts, own)) partners.push_back(step.host);
  std::sort(partners.begin(), partners.end());
  partners.erase(std::unique(partners.begin(), partners.end()), partners.end());
  return partners;
}

CanonicalReduction::CanonicalReduction(const Reduction& reduction, const HostLayout& layout)
    : reduction_(reduction), merge_(merge_of(reduction)), layout_(layout) {}

void CanonicalReduction::reduce(std::span<const std::byte* const> inputs, std::byte* out, std::size_t count) {
  if (count == 0) return;
  std::vector<const std::byte*> given;
  if (layout_.host_count() == 1) {
    std::copy_if(inputs.begin(), inputs.end(), std::back_inserter(given),
                 [](const std::byte* input) { return input != nullptr; });
    return reduce_chunk(reduction_, given, out, count);
  }
  const std::size_t bytes = count * known_element_size(merge_.dtype);
  const auto hosts = static_cast<std::size_t>(layout_.host_count());
  partials_.resize(hosts * bytes);
  const auto partial = [&](int host) { return partials_.data() + host * bytes; };
  int contributors = 0;
  for (int host = 0; host < layout_.host_count(); ++host) {
    given.clear();
    for (const int rank : layout_.hosts[host]) {
      if (const std::byte* const input = inputs[rank]) given.push_back(input);
    }
    contributors += std::ssize(given);
    reduce_host(reduction_, given, partial(host), count);
  }
  for (const auto& [left, right] : tree_pairs(layout_.host_count())) {
    const std::array<const std::byte*, 2> both{partial(left), partial(right)};
    reduce_chunk(merge_, both, partial(left), count);
  }
  finish_chunk(reduction_, partial(0), out, count, contributors);
}

}  // namespace ddl::runtime
