// The machine on which figures were measured, its load by other programs, and how far apart its CPUs are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/deadline.h"

namespace ddl::bench {

struct Machine {
  std::string cpu_model;
  int cpus = 0;
  std::string system;      ///< "Debian GNU/Linux 12 (bookworm)"
  std::string kernel;      ///< "6.1.0"
  std::string date;        ///< UTC, "2025-01-31"
  std::string build_type;  ///< of ddl-bench and its contenders: "Release", "Release with fault injection"
  std::string version;     ///< of this project
  std::string open_mpi;    ///< "4.1.4", "" if there is none
};

/// mpirun: its path, or "" if there is none.
Machine describe_machine(const std::string& mpirun);

/// Measures which share of the machine other programs use from its construction on.
class LoadWatch {
 public:
  /// also_own: CPU seconds so far that daemons and other processes use for the benchmark; may be empty.
  explicit LoadWatch(std::function<double()> also_own = {});
  /// Share of all CPU time since construction, 0..1, that neither was idle nor went to this process, its reaped
  /// children, or what also_own counts. Zero where /proc/stat cannot be read.
  double other_load() const;

 private:
  struct Sample {
    double total = 0;
    double busy = 0;
    double own = 0;
  };
  Sample sample() const;
  std::function<double()> also_own_;
  Sample start_;
};

// How far apart CPUs are. A virtual machine changes that within seconds, and says nothing about it.

/// From the first of some CPUs to each of the others (base/core_distance.h).
enum class Distance : std::uint8_t {
  kUnknown,  ///< not measured, or it changed meanwhile
  kNear,     ///< to all
  kFar,      ///< to all
  kMixed,    ///< near to some and far to others
};

/// If the first is far from this number of the others.
constexpr Distance distance_by(std::size_t far, std::size_t others) {
  return far == 0 ? Distance::kNear : far == others ? Distance::kFar : Distance::kMixed;
}

/// "near".
const char* name_of(Distance distance);

/// Of at least two CPUs, by threads that are bound to them; kUnknown if they cannot be bound.
Distance distance_of(const std::vector<int>& cpus);

/// As many of the allowed CPUs as there are ranks, of which the first is far from all others. If there are none, waits
/// for them until the deadline, and then returns the first ones.
std::vector<int> far_cpus(const std::vector<int>& allowed, int ranks, Deadline deadline);

/// Waits until the first of these CPUs is far from all others. Returns whether it is.
bool wait_until_far(const std::vector<int>& cpus, Deadline deadline);

}  // namespace ddl::bench
