#include "templates/profile/site_profile.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "templates/profile/site_fields.h"
#include "templates/profile/yaml.h"

namespace ddl::templates {
namespace {

using Kind = YamlNode::Kind;
using affinity::NodeModel;

constexpr int kMaxCores = 8192;
constexpr int kMaxGigabytes = 1 << 20;
constexpr std::size_t kMaxDevices = 1024;

/// [3, 3, 1, 1]: the NUMA node of each GPU.
Status read_gpu_numa(const YamlNode& list, std::vector<int>& target) {
  if (list.kind != Kind::kSequence || list.items.size() > kMaxDevices)
    return refuse("it takes a list of NUMA nodes, one for each GPU");
  for (const YamlNode& item : list.items) {
    DDL_ASSIGN(numa, yaml_integer(item, 0, kMaxCores));
    target.push_back(static_cast<int>(numa));
  }
  return {};
}

/// {hsn0: 3}: the NUMA node of each adapter.
Status read_nics(const YamlNode& map, std::vector<NodeModel::Nic>& target) {
  if (map.kind != Kind::kMap || map.items.size() > 2 * kMaxDevices)
    return refuse("it takes the NUMA node of each adapter, as in hsn0: 3");
  for (std::size_t i = 0; i + 1 < map.items.size(); i += 2) {
    DDL_ASSIGN(name, yaml_text(map.items[i]));
    DDL_ASSIGN(numa, yaml_integer(map.items[i + 1], 0, kMaxCores));
    target.push_back({std::move(name), static_cast<int>(numa)});
  }
  return {};
}

std::vector<YamlField> gpu_fields(NodeModel& target) {
  return {
      {"vendor",
       into_choice(target.gpu_vendor, {{"nvidia", affinity::GpuVendor::kNvidia},
                                       {"amd", affinity::GpuVendor::kAmd},
                                       {"intel", affinity::GpuVendor::kIntel}}),
       "whose GPUs they are", "`nvidia`"},
      {"model", into(target.gpu_model), "their name, for the picture", ""},
      {"numa",
       {"list of numbers", [&target](const YamlNode& list) { return read_gpu_numa(list, target.gpu_numa); }},
       "the NUMA node of each GPU, in the vendor's order",
       ""},
  };
}

std::vector<YamlField> node_fields(NodeModel& target, int& gigabytes, std::string_view file) {
  const auto read_gpus = [&target, file](const YamlNode& map) {
    return read_fields(map, file, gpu_fields(target));
  };
  return {
      {"board", into(target.board), "the name in the firmware", ""},
      {"packages", into(target.packages, 1, kMaxCores), "sockets", "1"},
      {"numa-per-package", into(target.numa_per_package, 1, kMaxCores), "NUMA nodes with cores in each", "1"},
      {"l3s-per-numa", into(target.l3s_per_numa, 1, kMaxCores), "L3 caches in each", "1"},
      {"cores-per-l3", into(target.cores_per_l3, 1, kMaxCores), "cores that share one", "1"},
      {"threads-per-core", into(target.threads_per_core, 1, kMaxCores), "hardware threads of each core", "1"},
      {"threads",
       into_choice(target.threads,
                   {{"across", NodeModel::Threads::kAcross}, {"adjacent", NodeModel::Threads::kAdjacent}}),
       "`across`: thread t of core c is CPU c + t × cores, as on x86 and Arm. `adjacent`: c × threads + t, "
       "as "
       "on POWER",
       "`across`"},
      {"memory-per-numa-gb", into(gigabytes, 1, kMaxGigabytes), "for the picture", "unknown"},
      {"reserved",
       into("`first-core-per-l3`, or CPUs: `0,8,16-17`", target.reserved, affinity::parse_reserved),
       "cores that jobs do not get", "none"},
      {"gpus", {"map, below", read_gpus}, "the GPUs of the node", "none"},
      {"nics",
       {"map of `NAME: number`", [&target](const YamlNode& map) { return read_nics(map, target.nics); }},
       "the NUMA node of each network adapter",
       "none"},
  };
}

Status read_node(const YamlNode& map, std::string_view file, NodeModel& node) {
  int gigabytes = 0;
  DDL_TRY(read_fields(map, file, node_fields(node, gigabytes, file)));
  node.numa_memory_bytes = static_cast<std::uint64_t>(gigabytes) * 1'000'000'000;
  // So that a profile that is read can be used.
  DDL_TRY(affinity::topology_of_model(node, std::string(file) + ":" + std::to_string(map.line)));
  return {};
}

std::vector<YamlField> binding_fields(SiteProfile& target) {
  return {{"rank-order",
           into_choice(target.rank_order,
                       {{"gpu", affinity::RankOrder::kGpu}, {"cpu", affinity::RankOrder::kCpu}}),
           "as `--rank-order`, which takes precedence", "`gpu`"}};
}

/// What may differ between the jobs of a site.
std::vector<YamlField> profile_fields(SiteProfile& target, std::string_view file) {
  const auto read_binding = [&target, file](const YamlNode& map) {
    return read_fields(map, file, binding_fields(target));
  };
  const auto read_slurm = [&target, file](const YamlNode& map) {
    return read_fields(map, file, slurm_fields(target.slurm));
  };
  const auto read_setup = [&target, file](const YamlNode& map) {
    return read_fields(map, file, setup_fields(target.setup, file));
  };
  const auto add_notes = [&target](const YamlNode& list) -> Status {
    DDL_ASSIGN(notes, yaml_texts(list));
    target.notes.insert(target.notes.end(), notes.begin(), notes.end());
    return {};
  };
  return {
      {"title", into(target.title), "a description for readers", ""},
      {"node",
       {"map, below",
        [&target, file](const YamlNode& map) { return read_node(map, file, target.node.emplace()); }},
       "the hardware of a whole node; without it `--show-bind --site` is refused, as too little is published",
       ""},
      {"binding", {"map, below", read_binding}, "what the site advises", ""},
      {"slurm", {"map, below", read_slurm}, "what its Slurm requires", ""},
      {"setup", {"map, below", read_setup}, "what job scripts set up before the ranks start", ""},
      {"notes",
       {"list of texts", add_notes},
       "sentences for users: what is not known, what needs attention. `--slurm` prints them on standard "
       "error, but not with `--quiet`",
       ""},
  };
}

/// variants: where their map goes; they are read when all else has been.
std::vector<YamlField> site_fields(Site& target, YamlNode& variants, std::string_view file) {
  std::vector<YamlField> fields = {{"name", into(target.all.name), "the name for `--site`; required", ""}};
  for (YamlField& field : profile_fields(target.all, file)) fields.push_back(std::move(field));
  fields.push_back({"closed", into(target.closed),
                    "why there is no more to say, and which site follows; `--site` is refused with it", ""});
  fields.push_back({"default-variant", into(target.default_variant),
                    "the variant of jobs whose request does not tell", "what holds for all jobs"});
  fields.push_back({"variants",
                    {"map of variants, each with keys as below",
                     [&variants](const YamlNode& map) -> Status {
                       variants = map;
                       return {};
                     }},
                    "jobs for which something else holds, in most cases because they get other nodes: `gpu: "
                    "{partitions: [gpu], ...}`. `--site NAME-VARIANT` names one",
                    ""});
  fields.push_back({"sources", into_sources(target.sources, file),
                    "the documents that the facts come from; `--site NAME --explain` shows them", ""});
  return fields;
}

std::vector<YamlField> variant_fields(SiteVariant& target, std::string_view file) {
  std::vector<YamlField> fields = {
      {"partitions", into(target.profile.partitions),
       "a job that names only these with `--partition` is of this variant. `gpu*` stands for all that begin "
       "so",
       ""},
      {"constraints", into(target.profile.constraints), "the same, for one of the words of `--constraint`",
       ""},
      {"qos", into(target.profile.qos), "the same, for `--qos`", ""}};
  for (YamlField& field : profile_fields(target.profile, file)) fields.push_back(std::move(field));
  return fields;
}

/// {g: {partitions: [standard-g]}, c: ...}: each begins as what holds for all jobs.
Status read_variants(const YamlNode& map, std::string_view file, Site& site) {
  const auto at = [file](const YamlNode& node) {
    return std::string(file) + ":" + std::to_string(node.line) + ": ";
  };
  if (map.kind != Kind::kMap || map.items.size() > 2 * kMaxDevices)
    return refuse(at(map) +
                  "variants: it takes names, each with what differs, as in gpu: {partitions: [gpu]}");
  for (std::size_t i = 0; i + 1 < map.items.size(); i += 2) {
    const auto name = yaml_text(map.items[i]);
    if (!name) return refuse(at(map.items[i]) + "the name of a variant is one text");
    if (std::any_of(site.variants.begin(), site.variants.end(),
                    [&](const SiteVariant& one) { return one.name == *name; }))
      return refuse(at(map.items[i]) + *name + " occurs twice");
    SiteVariant& variant = site.variants.emplace_back();
    variant.name = *name;
    variant.profile = site.all;
    variant.profile.name = site.all.name + "-" + *name;
    DDL_TRY(read_fields(map.items[i + 1], file, variant_fields(variant, file)));
  }
  return {};
}

SiteKeyTable table_of(std::string map, const std::vector<YamlField>& fields) {
  SiteKeyTable table{std::move(map), {}};
  for (const YamlField& field : fields) {
    table.keys.push_back({std::string(field.key), field.value.accepts, std::string(field.meaning),
                          std::string(field.default_value)});
  }
  return table;
}

/// Whether word is one of these, of which "gpu*" stands for all that begin so.
bool has_word(const std::vector<std::string>& words, std::string_view word) {
  return std::any_of(words.begin(), words.end(), [word](std::string_view one) {
    return one.ends_with('*') ? word.starts_with(one.substr(0, one.size() - 1)) : word == one;
  });
}

/// What one option of a request says of a variant.
enum class Says { kNothing, kYes, kNo };

/// A job may get any one of its partitions.
Says partitions_say(const SiteProfile& site, std::string_view requested) {
  if (requested.empty() || site.partitions.empty()) return Says::kNothing;
  const auto names = split(requested, ',');
  const bool all = std::all_of(names.begin(), names.end(),
                               [&](std::string_view name) { return has_word(site.partitions, name); });
  return all ? Says::kYes : Says::kNo;
}

/// The words of "gpu&hbm80g", "[rack1*2|rack2]".
std::vector<std::string_view> words_of_constraint(std::string_view text) {
  std::vector<std::string_view> words;
  constexpr std::string_view kBetween = "&|,[]()* ";
  for (std::size_t end = 0; !text.empty(); text.remove_prefix(std::min(end + 1, text.size()))) {
    end = std::min(text.find_first_of(kBetween), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
  }
  return words;
}

using WordsOfProfile = std::vector<std::string> SiteProfile::*;

bool has_one_of(const SiteProfile& site, WordsOfProfile words,
                const std::vector<std::string_view>& requested) {
  return std::any_of(requested.begin(), requested.end(),
                     [&](std::string_view word) { return has_word(site.*words, word); });
}

/// A word that no variant has says nothing about any, except about those whose jobs need one of theirs. variants: of
/// the site that the profile is a variant of.
Says words_say(const SiteProfile& site, WordsOfProfile words, const std::vector<std::string_view>& requested,
               bool is_needed, const std::vector<SiteVariant>& variants) {
  if (requested.empty() || (site.*words).empty()) return Says::kNothing;
  if (has_one_of(site, words, requested)) return Says::kYes;
  const bool is_of_another = std::any_of(variants.begin(), variants.end(), [&](const SiteVariant& one) {
    return has_one_of(one.profile, words, requested);
  });
  return is_of_another || is_needed ? Says::kNo : Says::kNothing;
}

/// What partition, constraint and quality of service say.
std::array<Says, 3> all_say(const SiteProfile& site, const NodeRequest& request,
                            const std::vector<SiteVariant>& variants) {
  return {partitions_say(site, request.partition),
          words_say(site, &SiteProfile::constraints, words_of_constraint(request.constraint),
                    !site.slurm.constraint.empty(), variants),
          words_say(site, &SiteProfile::qos, split(request.qos, ','), !site.slurm.qos.empty(), variants)};
}

/// Why nothing is known of the nodes that a request names; "": nothing was to be known.
std::string unknown_nodes(const Site& site, const NodeRequest& request) {
  constexpr std::string_view kRest = ", so only what holds for all its jobs is known";
  std::vector<std::string> known;
  for (const SiteVariant& one : site.variants) {
    for (const std::string& name : one.profile.partitions) {
      if (std::ranges::find(known, name) == known.end()) known.push_back(name);
    }
  }
  const auto names = split(request.partition, ',');
  const auto unknown =
      std::ranges::find_if(names, [&known](std::string_view name) { return !has_word(known, name); });
  if (!known.empty() && !request.partition.empty() && unknown != names.end())
    return "the profile has no partition '" + std::string(*unknown) + "'; it has " + join(known, ", ") +
           std::string(kRest);
  if (site.default_variant.empty()) return "";
  return "the profile does not describe the nodes that the job requests, or it has several kinds of them" +
         std::string(kRest);
}

/// Null: none.
const SiteVariant* variant_of(const Site& site, const NodeRequest& request, std::string_view variant) {
  const std::string_view preferred = variant.empty() ? site.default_variant : variant;
  const SiteVariant* kept = nullptr;   // the preferred one, if nothing speaks against it
  const SiteVariant* named = nullptr;  // by the request
  int num_named = 0;
  for (const SiteVariant& one : site.variants) {
    const auto all = all_say(one.profile, request, site.variants);
    if (std::ranges::find(all, Says::kNo) != all.end()) continue;
    if (one.name == preferred) kept = &one;
    if (std::ranges::find(all, Says::kYes) == all.end()) continue;
    if (one.name == variant) return &one;
    named = &one;
    ++num_named;
  }
  return num_named == 1 ? named : num_named == 0 ? kept : nullptr;
}

}  // namespace

SiteProfile profile_of(const Site& site, const NodeRequest& request, std::string_view variant) {
  const SiteVariant* const found = variant_of(site, request, variant);
  SiteProfile profile = found != nullptr ? found->profile : site.all;
  if (found == nullptr) {
    if (std::string note = unknown_nodes(site, request); !note.empty())
      profile.notes.push_back(std::move(note));
    return profile;
  }
  if (variant.empty() && found->name == site.default_variant) profile.name = site.all.name;
  return profile;
}

bool is_for(const SiteProfile& site, const NodeRequest& request) {
  const auto all = all_say(site, request, {});
  return std::ranges::find(all, Says::kNo) == all.end();
}

void leave_to_containers(SiteSetup& setup) {
  if (setup.variables_in_containers) return;
  setup.variables = setup.one_node_variables = setup.between_nodes_variables = {};
  setup.needed.reset();
}

Result<Site> read_site(std::string_view text, std::string_view file) {
  DDL_ASSIGN(root, parse_yaml(text, file));
  Site site;
  YamlNode variants;
  DDL_TRY(read_fields(root, file, site_fields(site, variants, file)));
  if (site.all.name.empty()) return refuse(std::string(file) + ": has no name");
  if (variants.line > 0) DDL_TRY(read_variants(variants, file, site));
  const bool has_default =
      std::any_of(site.variants.begin(), site.variants.end(),
                  [&](const SiteVariant& one) { return one.name == site.default_variant; });
  if (!site.default_variant.empty() && !has_default)
    return refuse(std::string(file) + ": default-variant: there is no variant " + site.default_variant);
  return site;
}

Result<SiteProfile> read_site_profile(std::string_view text, std::string_view file) {
  DDL_ASSIGN(site, read_site(text, file));
  return profile_of(site, {});
}

std::vector<SiteKeyTable> site_key_tables() {
  Site site;
  SiteVariant variant;
  SiteSource source;
  SiteProfile& profile = site.all;
  YamlNode variants;
  NodeModel node;
  NeededEnvironment needed;
  int gigabytes = 0;
  return {
      table_of("", site_fields(site, variants, "")),      table_of("variants", variant_fields(variant, "")),
      table_of("node", node_fields(node, gigabytes, "")), table_of("gpus", gpu_fields(node)),
      table_of("binding", binding_fields(profile)),       table_of("slurm", slurm_fields(profile.slurm)),
      table_of("setup", setup_fields(profile.setup, "")), table_of("needed", needed_fields(needed)),
      table_of("sources", source_fields(source))};
}

}  // namespace ddl::templates
