#include "templates/profile/site_catalog.h"

#include <unistd.h>

#include <filesystem>
#include <map>
#include <utility>

#include "base/text.h"
#include "templates/shipped_files.h"

namespace ddl::templates {
namespace {

constexpr std::string_view kSitesFolder = "sites/";
constexpr std::string_view kSiteSuffix = ".yaml";

}  // namespace

SiteCatalog::SiteCatalog(std::vector<std::string> folders, ReadFile read_file)
    : folders_(std::move(folders)), read_file_(std::move(read_file)) {}

Result<SiteText> SiteCatalog::text_of(const std::string& site) const {
  std::string own;
  if (site.find('/') != std::string::npos || site.ends_with(kSiteSuffix)) own = site;
  for (const std::string& folder : folders_) {
    const std::string file = folder + "/" + site + std::string(kSiteSuffix);
    if (own.empty() && ::access(file.c_str(), F_OK) == 0) own = file;
  }
  if (!own.empty()) {
    DDL_ASSIGN(text, read_file_(own));
    return SiteText{own, std::move(text)};
  }
  for (const ShippedFile& file : shipped_files()) {
    if (file.path == std::string(kSitesFolder) + site + std::string(kSiteSuffix))
      return SiteText{std::string(file.path), std::string(file.text)};
  }
  std::vector<std::string> names;
  for (const SiteName& known : list()) names.push_back(known.name);
  const auto nearest = nearest_word(site, names);
  return fail(ErrorCode::kInvalidArgument,
              "there is no profile of a site '" + site + "'; " +
                  (nearest ? "did you mean " + *nearest + "? There are " : "there are ") + join(names, ", "));
}

Result<SiteProfile> SiteCatalog::find(const std::string& site) const {
  DDL_ASSIGN(text, text_of(site));
  return read_site_profile(text.text, text.file);
}

std::vector<SiteName> SiteCatalog::list() const {
  std::map<std::string, SiteName> known;
  for (const std::string& folder : folders_) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      const std::filesystem::path& path = entry.path();
      if (path.extension() == kSiteSuffix) known.try_emplace(path.stem(), SiteName{path.stem(), "", path});
    }
  }
  for (const std::string& name : shipped_sites())
    known.try_emplace(name, SiteName{name, "", std::string(kSitesFolder) + name + std::string(kSiteSuffix)});
  std::vector<SiteName> sites;
  for (auto& [name, site] : known) {
    if (const auto profile = find(name)) site.title = profile->title;
    sites.push_back(std::move(site));
  }
  return sites;
}

std::vector<std::string> shipped_sites() {
  std::vector<std::string> names;
  for (const ShippedFile& file : shipped_files()) {
    if (!file.path.starts_with(kSitesFolder) || !file.path.ends_with(kSiteSuffix)) continue;
    names.emplace_back(
        file.path.substr(kSitesFolder.size(), file.path.size() - kSitesFolder.size() - kSiteSuffix.size()));
  }
  return names;
}

}  // namespace ddl::templates
