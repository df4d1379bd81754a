// Whether a text is a file of Chrome Trace Events that viewers show as it is meant.
#pragma once

#include <string>
#include <vector>

namespace ddl::test {

/// What is wrong with the text, at most ten sentences. Checked are: JSON in UTF-8; the members that the Trace Event
/// Format demands for each phase, and their ranges; that the events of a track are in order, and nested or disjoint
/// in the nanoseconds that Perfetto makes of their times; that each asynchronous event ends once; that processes and
/// tracks have names.
std::vector<std::string> trace_errors(const std::string& text);

/// The same for the events of one rank: objects with commas between them.
std::vector<std::string> event_errors(const std::string& events);

}  // namespace ddl::test
