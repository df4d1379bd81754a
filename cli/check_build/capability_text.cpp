#include "cli/check_build/capability_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "contract/version.h"

namespace ddl::cli {

namespace {

constexpr const char* yes_no(bool is_so) { return is_so ? "yes" : "no"; }

/// Version, file, and what else is to be said.
std::string told(const Finding& here) {
  std::vector<std::string> parts;
  for (const std::string* part : {&here.version, &here.file, &here.detail}) {
    if (!part->empty()) parts.push_back(*part);
  }
  if (!here.remedy.empty()) parts.push_back(here.remedy);
  return join(parts, "; ");
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string capability_line(const Capability& one) {
  return without_trailing_blanks(fmt::format("{}: built {}, works here {}  {}", one.name, yes_no(one.built),
                                             yes_no(one.here.works), told(one.here))) +
         "\n";
}

std::string check_build_text(const std::vector<Capability>& all) {
  std::string boxes = fmt::format("ddlrun v{}:\n", contract::kVersion);
  std::string table;
  std::string heading;
  std::size_t widest = 0;
  for (const Capability& one : all) widest = std::max(widest, one.name.size());
  for (const Capability& one : all) {
    if (one.heading != heading) {
      heading = one.heading;
      boxes += fmt::format("\nAvailable {}:\n", heading);
      table += fmt::format("\n{:<{}}  built  works here\n", heading, widest + 4);
    }
    boxes += fmt::format("    [{}] {}\n", one.available() ? 'X' : ' ', one.name);
    table += without_trailing_blanks(fmt::format("    {:<{}}  {:<5}  {:<3}  {}", one.name, widest,
                                                 yes_no(one.built), yes_no(one.here.works), told(one.here))) +
             "\n";
  }
  return boxes + table;
}

}  // namespace ddl::cli
