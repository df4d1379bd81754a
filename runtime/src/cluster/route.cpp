#include "runtime/src/cluster/route.h"

#include <numeric>

namespace ddl::runtime {
namespace {

/// Where each unit stands if one follows the other.
std::vector<ByteRange> laid_out(const std::vector<std::size_t>& units) {
  std::vector<ByteRange> ranges;
  std::size_t offset = 0;
  for (const std::size_t unit : units) {
    ranges.push_back({offset, unit});
    offset += unit;
  }
  return ranges;
}

/// Calls each(host) for all others, beginning with the next one, so that not all hosts send to the same one first.
template <class Each>
void for_others(int hosts, int own, Each each) {
  for (int distance = 1; distance < hosts; ++distance) each((own + distance) % hosts);
}

}  // namespace

Route route_of(const HostSteps& steps, std::size_t unit_bytes) {
  const auto bytes = [unit_bytes](const UnitRange& units) {
    return ByteRange{static_cast<std::size_t>(units.first) * unit_bytes,
                     static_cast<std::size_t>(units.count) * unit_bytes};
  };
  Route route;
  for (const HostStep& step : steps) {
    route.push_back({{{step.host, bytes(step.send), bytes(step.recv), step.merge}}, false, 0, 0, {}});
  }
  return route;
}

Route route_of(const std::vector<HostSteps>& rounds, const std::vector<std::size_t>& units) {
  const auto ranges = laid_out(units);
  const auto bytes = [&ranges](const UnitRange& of) {
    return of.count == 0 ? ByteRange{} : ranges[static_cast<std::size_t>(of.first)];
  };
  Route route;
  for (const HostSteps& steps : rounds) {
    Stage& stage = route.emplace_back();
    for (const HostStep& step : steps)
      stage.transfers.push_back({step.host, bytes(step.send), bytes(step.recv), step.merge});
  }
  return route;
}

Stage allgather_stage(const std::vector<std::size_t>& units, int own) {
  const auto ranges = laid_out(units);
  Stage stage;
  for_others(static_cast<int>(units.size()), own, [&](int host) {
    stage.transfers.push_back({host, ranges[static_cast<std::size_t>(own)],
                               ranges[static_cast<std::size_t>(host)], Merge::kReplace});
  });
  return stage;
}

Stage reduce_scatter_stage(const std::vector<std::size_t>& units, int own) {
  const auto ranges = laid_out(units);
  Stage stage;
  stage.combines_all = true;
  stage.own_host = own;
  stage.own = ranges[static_cast<std::size_t>(own)];
  stage.unit_bytes = stage.own.count;
  for_others(static_cast<int>(units.size()), own, [&](int host) {
    const ByteRange aside{static_cast<std::size_t>(host) * stage.unit_bytes, stage.unit_bytes};
    stage.transfers.push_back({host, ranges[static_cast<std::size_t>(host)], aside, Merge::kAside});
  });
  return stage;
}

}  // namespace ddl::runtime
