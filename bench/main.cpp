// ddl-bench: measures ddlrun and libddl against their peers.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/text.h"
#include "bench/benchmarks.h"
#include "bench/chart.h"
#include "bench/child.h"
#include "bench/cluster.h"

namespace {

using namespace ddl::bench;

// Where mpirun is: as a shell would find it.
std::string find_in_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  for (const std::string_view folder : ddl::split(path == nullptr ? "" : path, ':')) {
    std::string candidate = std::string(folder) + "/" + name;
    if (!folder.empty() && ::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return {};
}

Site find_site() {
  Site site;
  site.programs = std::filesystem::read_symlink("/proc/self/exe").parent_path().native();
  site.ddlrun = site.programs + "/ddlrun";
  site.mpirun = find_in_path("mpirun");
  site.mpi_absent = DDL_BENCH_MPI_ABSENT;
  site.is_root = ::geteuid() == 0;
  return site;
}

void list(const Site& site, const Settings& settings) {
  for (const Benchmark& benchmark : benchmarks()) {
    fmt::print("{}: {} ({})\n", benchmark.name, benchmark.what, ddl::counted(benchmark.blocks, "block"));
    for (const Entrant& entrant : benchmark.entrants(site, settings)) {
      fmt::print("  {:<24} {}\n  {:<24} {}\n", entrant.name, entrant.why, "", command_text(entrant.command));
      if (entrant.absent) fmt::print("  {:<24} absent: {}\n", "", *entrant.absent);
    }
  }
}

bool write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (file.fail()) fmt::print(stderr, "ddl-bench: cannot write {}\n", path);
  return !file.fail();
}

// Runs the same command again, on the head of a cluster that lives as long.
int run_on_head(const Benchmark& benchmark, const Settings& settings, const std::string& json,
                const std::string& svg) {
  namespace fs = std::filesystem;
  const fs::path program = fs::read_symlink("/proc/self/exe");
  std::vector<std::string> command{program, benchmark.name, "--blocks", std::to_string(settings.blocks)};
  if (settings.quick) command.push_back("--quick");
  std::vector<std::string> trees{program.parent_path()};
  for (const auto& [option, file] : {std::pair{"--json", json}, std::pair{"--svg", svg}}) {
    if (file.empty()) continue;
    // The head has a /tmp of its own, but sees this folder.
    command.insert(command.end(), {option, fs::absolute(file)});
    trees.push_back(fs::absolute(file).parent_path());
  }
  const auto exit_status = run_on_new_cluster(benchmark.hosts_needed(settings), trees, command);
  if (exit_status) return *exit_status;
  fmt::print(stderr, "ddl-bench: {}\n", exit_status.error().message());
  return 1;
}

int run(const Benchmark& benchmark, const Site& site, const Settings& settings, const std::string& json,
        const std::string& svg) {
  if (benchmark.hosts_needed != nullptr && !is_on_cluster_head())
    return run_on_head(benchmark, settings, json, svg);
  if (const auto status = become_subreaper(); !status) {
    fmt::print(stderr, "ddl-bench: {}\n", status.error().message());
    return 1;
  }
  const Report report = benchmark.run(site, settings);
  fmt::print("{}", as_table(report));
  bool is_good = json.empty() || write_file(json, as_json(report));
  if (!svg.empty()) is_good = write_file(svg, as_chart(report)) && is_good;
  for (const Entrant& entrant : report.entrants) {
    // To be absent is a fact about the machine; to fail is a fault, and with ours once is enough.
    if (entrant.failed || (entrant.is_ours && entrant.failed_runs > 0)) is_good = false;
  }
  return is_good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Measures ddlrun and libddl against their peers, in interleaved ABBA blocks.", "ddl-bench"};
  app.footer(
      "Examples:\n  ddl-bench launch\n  ddl-bench allreduce --blocks 10 --json allreduce.json --svg "
      "allreduce.svg\n"
      "Benchmarks over hosts start a cluster and end it; on a cluster's head they use that one. Where there "
      "can be none "
      "they print why and exit with 77.\n"
      "A lost comparison is printed as lost; an entrant that cannot run is printed with the reason.");
  std::vector<std::string> names;
  for (const Benchmark& benchmark : benchmarks()) names.push_back(benchmark.name);

  std::string name;
  std::string json;
  std::string svg;
  bool wants_list = false;
  Settings settings;
  app.add_option("benchmark", name, "Which one: " + ddl::join(names, ", "))->check(CLI::IsMember(names));
  app.add_flag("--quick", settings.quick,
               "A short run that shows that everything works; its figures mean little");
  app.add_option("--blocks", settings.blocks, "ABBA blocks: every entrant runs twice in each")
      ->check(CLI::Range(1, 10000));
  app.add_option("--cpus", settings.cpus, "CPUs that all entrants are pinned to [the first two allowed]")
      ->delimiter(',');
  app.add_option("--json", json, "Also write the results to this file as JSON");
  app.add_option("--svg", svg, "Also draw the results into this file");
  app.add_flag("--list", wants_list, "Show all benchmarks and entrants, and which can run here, and stop");
  CLI11_PARSE(app, argc, argv);

  if (settings.cpus.empty()) {
    settings.cpus = allowed_cpus();
    if (settings.cpus.size() > static_cast<std::size_t>(kRanks)) settings.cpus.resize(kRanks);
  }
  const Site site = find_site();
  if (wants_list) {
    list(site, settings);
    return 0;
  }
  for (const Benchmark& benchmark : benchmarks()) {
    if (name != benchmark.name) continue;
    if (settings.blocks == 0) settings.blocks = settings.quick ? 1 : benchmark.blocks;
    return run(benchmark, site, settings, json, svg);
  }
  fmt::print(stderr, "ddl-bench: which benchmark? One of: {}\n", ddl::join(names, ", "));
  return 2;
}
