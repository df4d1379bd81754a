// Jobs whose ranks go on while processes of theirs are killed at random, and hosts come and leave.
#include <unistd.h>

#include <csignal>
#include <map>
#include <random>

#include <nlohmann/json.hpp>

#include "base/process.h"
#include "base/text.h"
#include "e2e/harness/elastic_job.h"
#include "e2e/harness/listed_hosts.h"
#include "support/catch.h"

namespace ddl::e2e {
namespace {

using Words = std::vector<std::string>;

/// Of two hosts with three slots each.
class EventfulJob {
 public:
  /// Waits until all ranks of the newest generation have said who they are; it is not older than this.
  void wait_for_generation(int least = 0) {
    job_.job().wait_until("a whole generation", [&] {
      read_generations();
      return generation_ >= least && std::ssize(newest_) == size_;
    });
  }

  /// Something that may happen. One rank is left, which has the state.
  void disturb() {
    std::vector<int> living = living_ranks();
    for (; living.size() < 2; living = living_ranks()) wait_for_generation(generation_ + 1);
    const int victim = living[choose(living.size())];
    switch (choose(10)) {
      case 0:  // a spawner or its agent
      case 1: return kill_host_of(victim, living, static_cast<int>(choose(2)));
      case 2: return list_or_unlist();
      case 3:
        if (living.size() > 2) kill(living[choose(living.size() - 1)]);  // two at once
        [[fallthrough]];
      default: kill(living.back());
    }
  }

  /// Waits, now and then, until something is said; events come in all phases of what they cause.
  void pause() {
    if (choose(4) == 0) return;
    if (choose(3) > 0) return wait_for_generation();
    (void)job_.job().is_silent_for(std::chrono::milliseconds(choose(300)));
  }

  /// The report, after the end of the job. Nothing of it is left.
  nlohmann::json end() {
    wait_for_generation();
    const int status = job_.stop();
    INFO(last_words());
    REQUIRE(status == 0);
    const std::string err = job_.job().err().substr(0, job_.job().err().size() - 1);
    return nlohmann::json::parse(err.substr(err.rfind('\n') + 1));
  }
  std::string last_words() {
    const std::string& err = job_.job().err();
    return err.substr(err.size() > 3000 ? err.size() - 3000 : 0);
  }

 private:
  struct Process {
    int slot = 0;  ///< of the job: those of the second host come behind
    int pid = 0;
  };
  static constexpr int kSlots = 3;  ///< of each host
  static constexpr char kBoth[] = "localhost:3\n127.0.0.1:3\n";

  std::vector<int> living_ranks() const {
    std::vector<int> living;
    for (const auto& [rank, one] : newest_) {
      // Those of a host that is not listed may leave at any moment. When it is listed again, they may just have left, or
      // leave one generation later, because they hand over their state first.
      const bool may_leave = one.slot >= kSlots && (!are_both_listed_ || generation_ <= changed_in_ + 1);
      if (!is_doomed(one.pid) && !may_leave && ::kill(one.pid, 0) == 0) living.push_back(one.pid);
    }
    return living;
  }

  void list_or_unlist() {
    read_generations();
    changed_in_ = generation_;
    hosts_.set(std::exchange(are_both_listed_, !are_both_listed_) ? "localhost:3\n" : kBoth);
  }
  std::size_t choose(std::size_t below) { return random_() % below; }
  void kill(int pid) {
    doom(pid);
    (void)::kill(pid, SIGKILL);
  }
  void doom(int pid) {
    if (const auto process = read_process_stat(pid)) doomed_[pid] = process->start_time;
  }
  /// After thousands of processes a number comes again.
  bool is_doomed(int pid) const {
    const auto doomed = doomed_.find(pid);
    if (doomed == doomed_.end()) return false;
    const auto process = read_process_stat(pid);
    return !process || process->start_time == doomed->second;
  }
  static int parent_of(int pid) {
    const auto process = read_process_stat(pid);
    return process ? process->parent : 0;
  }

  /// above: 0 is the spawner, 1 its agent.
  void kill_host_of(int victim, const std::vector<int>& living, int above) {
    const auto spawner = read_process_stat(parent_of(victim));
    if (!spawner || spawner->name != "ddl-spawner") return kill(victim);
    std::vector<int> with_it;
    for (const int pid : living) {
      if (parent_of(pid) == spawner->pid) with_it.push_back(pid);
    }
    if (with_it.size() == living.size()) return kill(victim);
    for (const int pid : with_it) doom(pid);
    (void)::kill(above == 0 ? spawner->pid : spawner->parent, SIGKILL);
  }

  void read_generations() {
    const std::string_view out = job_.job().out();
    for (std::size_t at = out.find("generation ", seen_); at != std::string_view::npos;
         at = out.find("generation ", at + 1)) {
      const std::size_t end = out.find('\n', at);
      if (end == std::string_view::npos) return;
      int generation = 0, rank = 0, size = 0;
      Process one;
      const std::size_t line = out.rfind('[', at);
      if (std::sscanf(std::string(out.substr(line, end - line)).c_str(),
                      "[%d]<stdout>:generation %d: rank %d of %d, local %*d of %*d, pid %d", &one.slot,
                      &generation, &rank, &size, &one.pid) == 5) {
        if (generation > generation_) newest_.clear();
        if (generation >= generation_) newest_[rank] = one, size_ = size, generation_ = generation;
      }
      seen_ = end;
    }
  }

  std::mt19937 random_{20261129};
  const Scratch scratch_;
  const ListedHosts hosts_{scratch_, kBoth};
  ElasticJob job_{Words{"-np", "6", "--min-np", "1", "--oversubscribe", "--json", "--host-discovery-script",
                        hosts_.script(), "--elastic-settle", "0", "--blacklist-cooldown-range", "1", "1"}};
  bool are_both_listed_ = true;
  int changed_in_ = -2;  ///< the generation in which the list was changed last
  std::size_t seen_ = 0;
  int generation_ = -1;
  int size_ = 0;
  std::map<int, std::uint64_t>
      doomed_;  ///< start times of those that were killed, alone or with their host, by pid
  std::map<int, Process> newest_;  ///< by rank, of those that have said so
};

void check_after_events(int events) {
  EventfulJob job;
  job.wait_for_generation();
  for (int event = 0; event < events; ++event) {
    CAPTURE(event, job.last_words());
    job.disturb();
    job.pause();
  }
  const nlohmann::json report = job.end();
  CHECK(report["reason"] == "success");
  CHECK(std::ssize(report["generations"]) > events / 4);
  for (const nlohmann::json& generation : report["generations"]) {
    CAPTURE(generation.dump());
    const bool is_named =
        generation["message"].is_string() && !generation["message"].get<std::string>().empty();
    CHECK((is_named || generation["reason"] == "success" || generation["reason"] == "hosts_changed"));
  }
}

TEST_CASE("after a hundred events ranks go on, every loss is named, and nothing is left",
          "[continued_events]") {
  check_after_events(100);
}

TEST_CASE("after a thousand events, too", "[continued_thousand]") { check_after_events(1000); }

}  // namespace
}  // namespace ddl::e2e
