// What --show-bind and --show-topology are asked for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "affinity/output/binding_format.h"
#include "affinity/output/topology_format.h"

namespace ddl::cli {

struct BindingView {
  int local_ranks = 0;   ///< 0: the node alone
  std::string topology;  ///< "" or an XML file or hwloc's synthetic form; this machine if there is no text
  std::string site;      ///< "" or the name or file of a profile, whose node it is then
  bool has_rank_order = false;          ///< the user has said one, so a site's does not count
  std::vector<std::string> text_files;  ///< recorded text, read one after the other; "-" is standard input
  affinity::BindingFormat format = affinity::BindingFormat::kTable;
  /// Of --show-topology; nothing for --show-bind.
  std::optional<affinity::TopologyFormat> topology_format;
};

}  // namespace ddl::cli
