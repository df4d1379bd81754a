// Reads --rankfile, and --map-by and --rank-by in mpirun's words: WHAT, ppr:N:WHAT, and modifiers after a colon.
#include <utility>

#include "base/text.h"
#include "cli/options/option_values.h"
#include "cli/options/readers.h"
#include "launcher/job/rankfile.h"

namespace ddl::cli {

namespace {

using affinity::BindTo;
using launcher::MapBy;

struct MapByValue {
  MapBy map_by = MapBy::kSlot;
  int ranks_per_node = 0;  ///< of ppr:N:node
  affinity::ObjectMapping mapping;
  int cores_per_rank = 0;  ///< of PE=N
  bool oversubscribe = false;
  std::string rankfile;  ///< of rankfile:file=FILE
};

constexpr std::pair<std::string_view, BindTo> kObjects[] = {
    {"socket", BindTo::kSocket}, {"package", BindTo::kSocket}, {"numa", BindTo::kNuma},
    {"l3", BindTo::kL3},         {"l3cache", BindTo::kL3},     {"core", BindTo::kCore},
    {"pu", BindTo::kPu},         {"hwthread", BindTo::kPu}};

std::optional<BindTo> object_named(std::string_view word) {
  for (const auto& [name, object] : kObjects) {
    if (word == name) return object;
  }
  return std::nullopt;
}

/// What to type instead of a modifier that ddlrun does not have; "" for words that mpirun has not either.
std::string_view instead_of(std::string_view modifier) {
  constexpr std::pair<std::string_view, std::string_view> kInstead[] = {
      {"span", "--map-by node, which uses the hosts in turn"},
      {"nolocal", "--hosts-exclude with the name of this host"},
      {"hwtcpus", "--smt, which gives ranks all hardware threads of their cores"},
      {"corecpus", "nothing: ddlrun counts cores, unless --smt is given"},
      {"inherit", "nothing: a rank of ddlrun that starts another ddlrun chooses its own placement"},
      {"noinherit", "nothing: a rank of ddlrun that starts another ddlrun chooses its own placement"},
      {"ordered", "--rank-order cpu"},
  };
  for (const auto& [word, text] : kInstead) {
    if (modifier == word) return text;
  }
  return "";
}

// mpirun ignores the case of its words.

Status read_modifier(std::string_view typed, std::string_view whole, MapByValue& value) {
  const std::string modifier = in_lower_case(typed);
  if (modifier.starts_with("pe=")) {
    const auto cores = parse_count(std::string_view(modifier).substr(3), 1, kMaxCores);
    if (!cores) return fail(Error(cores.error()).during(std::string(typed) + " in " + in_quotes(whole)));
    value.cores_per_rank = *cores;
    return {};
  }
  if (modifier == "oversubscribe" || modifier == "nooversubscribe") {
    value.oversubscribe = modifier == "oversubscribe";
    return {};
  }
  if (const std::string_view instead = instead_of(modifier); !instead.empty())
    return refuse(std::string(typed) + " in " + in_quotes(whole) + " is mpirun's; instead of it type " +
                  std::string(instead));
  return refuse(in_quotes(typed) + " in " + in_quotes(whole) + " is neither PE=N nor OVERSUBSCRIBE");
}

/// The first parts: "slot", "numa", "ppr" "2" "numa". Returns how many these are.
Result<std::size_t> read_target(const std::vector<std::string_view>& parts, std::string_view text,
                                MapByValue& value) {
  const std::string first = in_lower_case(parts[0]);
  if (first == "slot" || first == "node") {
    value.map_by = first == "node" ? MapBy::kNode : MapBy::kSlot;
    return std::size_t{1};
  }
  if (const auto object = object_named(first)) {
    value.mapping.object = *object;
    return std::size_t{1};
  }
  if (first != "ppr") return refuse_word(parts[0], words_of_value(OptionId::kMapBy));
  if (parts.size() < 3) return refuse(in_quotes(text) + " is not of the form ppr:N:WHAT, as in ppr:2:numa");
  const auto count = parse_rank_count(parts[1]);
  if (!count) return fail(Error(count.error()).during(in_quotes(text)));
  const std::string what = in_lower_case(parts[2]);
  if (what == "node") {
    value.ranks_per_node = *count;
  } else if (const auto object = object_named(what)) {
    value.mapping = {*object, *count};
  } else {
    return refuse(in_quotes(parts[2]) + " in " + in_quotes(text) +
                  " is not one of node, socket, package, numa, l3, l3cache, core, pu, hwthread");
  }
  return std::size_t{3};
}

/// "rankfile:file=FILE"; the name of the file may have colons.
Result<MapByValue> parse_rankfile_word(std::string_view text) {
  constexpr std::string_view kBeginning = "rankfile:file=";
  if (!in_lower_case(text).starts_with(kBeginning) || text.size() == kBeginning.size())
    return refuse(in_quotes(text) + " names no file; type --rankfile FILE");
  MapByValue value;
  value.rankfile = text.substr(kBeginning.size());
  return value;
}

Result<MapByValue> parse_map_by(std::string_view text) {
  if (in_lower_case(text.substr(0, text.find(':'))) == "rankfile") return parse_rankfile_word(text);
  MapByValue value;
  const auto parts = split(text, ':');
  DDL_ASSIGN(target, read_target(parts, text, value));
  for (std::size_t i = target; i < parts.size(); ++i) {
    for (const std::string_view modifier : split(parts[i], ','))
      DDL_TRY(read_modifier(modifier, text, value));
  }
  return value;
}

Result<launcher::RankBy> parse_rank_by(std::string_view text) {
  const std::string word = in_lower_case(text);
  if (word == "slot" || word == "fill") return launcher::RankBy::kSlot;
  if (word == "node") return launcher::RankBy::kNode;
  if (word == "span")
    return refuse(in_quotes(text) + " is mpirun's; type --map-by node, which uses the hosts in turn");
  if (object_named(word))
    return refuse(in_quotes(text) +
                  " is mpirun's; ranks of a host are numbered as they are placed: type --map-by " + word +
                  ", which places them on objects in turn");
  return refuse_word(text, {"slot", "node"});
}

}  // namespace

void read_map_by(ValueReader& values, launcher::JobSpec& job) {
  MapByValue value;
  values.take(OptionId::kMapBy, parse_map_by, value);
  job.map_by = value.map_by;
  job.rankfile = value.rankfile;
  job.binding.mapping = value.mapping;
  if (value.ranks_per_node > 0 || value.mapping.ranks_per_object > 0)
    values.exclude(OptionId::kMapBy, OptionId::kRanksPerNode);
  if (value.ranks_per_node > 0) job.ranks_per_node = value.ranks_per_node;
  if (value.cores_per_rank > 0) {
    values.exclude(OptionId::kMapBy, OptionId::kCoresPerRank);
    job.binding.cores_per_rank = value.cores_per_rank;
  }
  job.oversubscribe |= value.oversubscribe;
  values.take(OptionId::kRankBy, parse_rank_by, job.rank_by);
}

void read_rankfile(ValueReader& values, const CommandLineContext& context, launcher::JobSpec& job) {
  if (!job.rankfile.empty()) {
    values.exclude(OptionId::kMapBy, OptionId::kRankfile);
  } else {
    values.exclude(OptionId::kRankfile, OptionId::kMapBy);
    values.take(OptionId::kRankfile, not_empty, job.rankfile);
  }
  if (job.rankfile.empty() || !values.status()) return;
  const OptionId given_by = values.has(OptionId::kRankfile) ? OptionId::kRankfile : OptionId::kMapBy;
  values.exclude(given_by, OptionId::kRanksPerNode);
  for (const OptionId other : kSaidByRankfile) values.exclude(given_by, other);
  if (!values.status()) return;
  if (job.rankfile == "-") {
    const auto& hostfiles = values.given()[OptionId::kHostfile];
    if (!hostfiles.empty() && hostfiles.front().text == "-")
      return values.refuse_once(given_by, "--rankfile - and --hostfile - would both read standard input",
                                "name a file for one of them");
    if (values.given().has(OptionId::kSlurm))
      return values.refuse_once(
          given_by, "--rankfile - reads standard input, which a job script does not have", "name a file");
  }
  const auto text = context.read_file ? context.read_file(job.rankfile)
                                      : Result<std::string>(refuse("files are not read here"));
  if (!text)
    return values.refuse_once(given_by, "the rankfile cannot be read: " + text.error().message(),
                              usage_line(entry_of(OptionId::kRankfile)));
  auto ranks = launcher::parse_rankfile(*text, job.rankfile);
  if (!ranks)
    return values.refuse_once(given_by, ranks.error().message(), usage_line(entry_of(OptionId::kRankfile)));
  job.placed_ranks = *std::move(ranks);
  const int count = job.placed_ranks.size();
  if (job.num_ranks > 0 && job.num_ranks != count)
    values.refuse_once(OptionId::kNumProc,
                       job.rankfile + " places " + counted(count, "rank") + ", and the job has " +
                           std::to_string(job.num_ranks),
                       "omit -np, or give every rank a line in " + job.rankfile);
  job.num_ranks = count;
}

}  // namespace ddl::cli
