#include "templates/site_catalog.h"

#include <unistd.h>

#include <utility>

#include "base/text.h"
#include "templates/shipped_files.h"

namespace ddl::templates {
namespace {

constexpr std::string_view kFolder = "sites/";
constexpr std::string_view kSuffix = ".yaml";

}  // namespace

SiteCatalog::SiteCatalog(std::string own_folder, ReadFile read_file)
    : own_folder_(std::move(own_folder)), read_file_(std::move(read_file)) {}

Result<SiteProfile> SiteCatalog::find(const std::string& site) const {
  const bool is_file = site.find('/') != std::string::npos || site.ends_with(kSuffix);
  const std::string own = is_file ? site : own_folder_ + "/" + site + std::string(kSuffix);
  if (is_file || (!own_folder_.empty() && ::access(own.c_str(), F_OK) == 0)) {
    const auto text = read_file_(own);
    if (!text) return fail(text.error());
    return read_site_profile(*text, own);
  }
  for (const ShippedFile& file : shipped_files()) {
    if (file.path == std::string(kFolder) + site + std::string(kSuffix))
      return read_site_profile(file.text, file.path);
  }
  return fail(ErrorCode::kInvalidArgument,
              "there is no profile of a site '" + site + "'; there are " + join(shipped_sites(), ", "));
}

std::vector<std::string> shipped_sites() {
  std::vector<std::string> names;
  for (const ShippedFile& file : shipped_files()) {
    if (!file.path.starts_with(kFolder) || !file.path.ends_with(kSuffix)) continue;
    names.emplace_back(file.path.substr(kFolder.size(), file.path.size() - kFolder.size() - kSuffix.size()));
  }
  return names;
}

}  // namespace ddl::templates
