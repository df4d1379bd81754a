#include "launcher/job/horovod_place.h"

#include <map>

namespace ddl::launcher {

std::vector<HorovodPlace> horovod_places(const std::vector<std::string>& hosts) {
  std::vector<HorovodPlace> places;
  std::map<std::string, int> local_sizes;
  std::map<int, int> cross_sizes;  // by local rank
  for (const std::string& host : hosts) {
    HorovodPlace place;
    place.rank = static_cast<int>(std::ssize(places));
    place.size = static_cast<int>(std::ssize(hosts));
    place.local_rank = local_sizes[host]++;
    place.cross_rank = cross_sizes[place.local_rank]++;
    place.hostname = host;
    places.push_back(std::move(place));
  }
  for (HorovodPlace& place : places) {
    place.local_size = local_sizes.at(place.hostname);
    place.cross_size = cross_sizes.at(place.local_rank);
  }
  return places;
}

}  // namespace ddl::launcher
