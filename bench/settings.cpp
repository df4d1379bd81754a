#include "bench/settings.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "bench/peers.h"
#include "bench/workload.h"

namespace ddl::bench {
namespace {

// "10gbit": tc gets it as one argument.
bool is_rate(const std::string& text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string unit = text.substr(digits);
  return digits > 0 && (unit == "kbit" || unit == "mbit" || unit == "gbit");
}

}  // namespace

Result<JobShape> job_shape(const JobOptions& options, bool takes_job, const std::vector<PeerMpi>& mpis) {
  const bool is_given = options.ranks != 0 || options.cpus_per_rank != 0 || options.hosts != 0 ||
                        !options.rate.empty() || !options.sizes.empty() || !options.model.empty() ||
                        !options.contenders.empty();
  if (is_given && !takes_job)
    return refuse(
        "--np, --cpus-per-rank, --hosts, --rate, --sizes, --model and --entrants are for the benchmarks of "
        "collectives and "
        "training steps");
  JobShape job;
  if (options.hosts != 0) job.hosts = options.hosts;
  job.ranks = options.ranks != 0 ? options.ranks : std::max(kRanks, job.hosts);
  if (options.cpus_per_rank != 0) job.cpus_per_rank = options.cpus_per_rank;
  if (job.ranks < 2) return refuse("--np 1 would exchange nothing; give 2 ranks or more");
  if (job.ranks % job.hosts != 0)
    return refuse(fmt::format("{} do not spread evenly over {}: choose --np as a multiple of --hosts",
                              counted(job.ranks, "rank"), counted(job.hosts, "host")));
  if (!options.rate.empty() && job.hosts == 1)
    return refuse("--rate needs --hosts 2 or more: ranks of one host use no network");
  if (!options.rate.empty() && !is_rate(options.rate))
    return refuse(fmt::format("--rate \"{}\" is not a number with kbit, mbit or gbit", options.rate));
  job.rate = options.rate;
  for (const std::string& text : options.sizes) {
    const auto bytes = parse_size(text);
    if (!bytes) return refuse(fmt::format("--sizes: \"{}\" is not a size such as 4, 64K or 16M", text));
    if (*bytes % sizeof(float) != 0)
      return refuse(
          fmt::format("--sizes: {} is not a whole number of elements: messages are of f32, so give a "
                      "multiple of {} bytes",
                      text, sizeof(float)));
    job.sizes.push_back(*bytes);
  }
  std::sort(job.sizes.begin(), job.sizes.end());
  const std::vector<std::string> names = contender_names(job.hosts, mpis);
  for (const std::string& name : options.contenders) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      return refuse(fmt::format("--entrants: \"{}\" does not take part on {}; those that can are {}", name,
                                counted(job.hosts, "host"), join(names, ", ")));
  }
  job.contenders = options.contenders;
  if (options.model.empty()) return job;
  const auto model = parse_model(options.model);
  if (!model) {
    std::vector<std::string> models;
    for (const Model known : all_models()) models.emplace_back(name_of(known));
    return refuse(fmt::format("--model \"{}\" is not one of {}", options.model, join(models, ", ")));
  }
  job.model = *model;
  return job;
}

}  // namespace ddl::bench
