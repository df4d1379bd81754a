// How a topology is written as JSON, for a script, and as CBOR, for the head.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "affinity/topology.h"

namespace ddl {

/// A set of CPUs is a list such as "0-7,64-71". from_json throws what nlohmann::json throws for another shape, and
/// std::out_of_range for numbers that make no sense together.
void to_json(nlohmann::json& j, const CpuSet& cpus);
void from_json(const nlohmann::json& j, CpuSet& cpus);

}  // namespace ddl

namespace ddl::affinity {

void to_json(nlohmann::json& j, const Topology& topology);
void from_json(const nlohmann::json& j, Topology& topology);

}  // namespace ddl::affinity
