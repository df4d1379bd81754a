// What Horovod's programs are told about a rank's place in its job.
#pragma once

#include <string>
#include <vector>

namespace ddl::launcher {

/// The values of HOROVOD_RANK and the like.
struct HorovodPlace {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  ///< among the ranks of its host
  int local_size = 1;
  int cross_rank = 0;  ///< of its host, among the hosts that have this local rank
  int cross_size = 1;
  std::string hostname;
  bool operator==(const HorovodPlace&) const = default;
};

/// Of ranks on these hosts, by rank. Pure.
std::vector<HorovodPlace> horovod_places(const std::vector<std::string>& hosts);

}  // namespace ddl::launcher
