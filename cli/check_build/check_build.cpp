#include "cli/check_build/check_build.h"

#include <algorithm>
#include <chrono>

#include "base/text.h"
#include "cli/check_build/capability_json.h"
#include "cli/check_build/capability_text.h"
#include "cli/check_build/host_boxes.h"
#include "cli/check_build/probe.h"
#include "launcher/agent/node_probe.h"

namespace ddl::cli {

namespace {

/// Longer than any look that is not stuck: all of them run at once.
constexpr std::chrono::seconds kPatience{20};

const Probe* find_probe(const std::string& key) {
  const auto probes = probe_list();
  const auto found =
      std::find_if(probes.begin(), probes.end(), [&key](const Probe& probe) { return key == probe.key; });
  return found == probes.end() ? nullptr : &*found;
}

std::string known_keys(const std::string& asked) {
  std::vector<std::string> keys;
  for (const Probe& probe : probe_list()) keys.emplace_back(probe.key);
  const auto nearest = nearest_word(asked, keys);
  return (nearest ? "did you mean " + *nearest + "? It knows " : "it knows ") + join(keys, ", ");
}

int check_one(const Probe& probe, const Request& request, const Console& console) {
  const auto all = look_into({&probe, 1}, kPatience);
  const int printed = console.print(request.json ? check_build_json(all, launcher::hostname())
                                                 : capability_line(all.front()));
  return printed != contract::kSuccess ? printed : all.front().available() ? 0 : 1;
}

}  // namespace

int check_build(const Request& request, const launcher::Environment& environment, const Console& console) {
  const Probe* one = request.box.empty() ? nullptr : find_probe(request.box);
  if (one == nullptr && !request.box.empty())
    return console.refuse({"--check-build knows no '" + request.box + "'", known_keys(request.box)});
  if (!request.allocation.nodes.empty()) return check_on_hosts(request, environment, console);
  if (one != nullptr) return check_one(*one, request, console);
  const auto all = look_into(probe_list(), kPatience);
  return console.print(request.json ? check_build_json(all, launcher::hostname()) : check_build_text(all));
}

}  // namespace ddl::cli
