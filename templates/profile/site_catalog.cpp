#include "templates/profile/site_catalog.h"

#include <unistd.h>

#include <algorithm>
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

Result<std::optional<SiteText>> SiteCatalog::named(const std::string& name) const {
  for (const std::string& folder : folders_) {
    const std::string file = folder + "/" + name + std::string(kSiteSuffix);
    if (::access(file.c_str(), F_OK) != 0) continue;
    DDL_ASSIGN(text, read_file_(file));
    return SiteText{file, std::move(text), ""};
  }
  for (const EmbeddedFile& file : shipped_files()) {
    if (file.path == std::string(kSitesFolder) + name + std::string(kSiteSuffix))
      return SiteText{std::string(file.path), std::string(file.text), ""};
  }
  return std::nullopt;
}

Result<SiteText> SiteCatalog::text_of(const std::string& site) const {
  if (site.find('/') != std::string::npos || site.ends_with(kSiteSuffix)) {
    DDL_ASSIGN(text, read_file_(site));
    return SiteText{site, std::move(text), ""};
  }
  DDL_ASSIGN(own, named(site));
  if (own) return *std::move(own);
  // The name of a variant; both names may have a "-".
  for (std::size_t end = site.rfind('-'); end != std::string::npos && end > 0;
       end = site.rfind('-', end - 1)) {
    DDL_ASSIGN(text, named(site.substr(0, end)));
    if (!text) continue;
    text->variant = site.substr(end + 1);
    DDL_ASSIGN(read, read_site(text->text, text->file));
    if (std::any_of(read.variants.begin(), read.variants.end(),
                    [&](const SiteVariant& one) { return one.name == text->variant; }))
      return *std::move(text);
  }
  std::vector<std::string> names, sites;
  for (const SiteName& known : list()) {
    names.push_back(known.name);
    if (!known.is_variant) sites.push_back(known.name);
  }
  const auto nearest = nearest_word(site, names);
  return fail(ErrorCode::kInvalidArgument,
              "there is no profile of a site '" + site + "'; " +
                  (nearest ? "did you mean " + *nearest + "? There are " : "there are ") + join(sites, ", "));
}

Result<SiteProfile> SiteCatalog::find(const std::string& site, const NodeRequest& request) const {
  DDL_ASSIGN(text, text_of(site));
  DDL_ASSIGN(read, read_site(text.text, text.file));
  return profile_of(read, request, text.variant);
}

std::vector<SiteName> SiteCatalog::list() const {
  std::map<std::string, SiteName> known;
  for (const std::string& folder : folders_) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      const std::filesystem::path& path = entry.path();
      if (path.extension() == kSiteSuffix)
        known.try_emplace(path.stem(), SiteName{path.stem(), "", path, false});
    }
  }
  for (const std::string& name : shipped_sites())
    known.try_emplace(name,
                      SiteName{name, "", std::string(kSitesFolder) + name + std::string(kSiteSuffix), false});
  std::vector<SiteName> sites;
  for (const auto& [name, one] : known) {
    SiteName& site = sites.emplace_back(one);
    const auto text = named(name);
    if (!text || !*text) continue;
    const auto read = read_site((*text)->text, (*text)->file);
    if (!read) continue;
    site.title = read->all.title;
    for (const SiteVariant& variant : read->variants) {
      const std::string own = name + "-" + variant.name;
      if (!known.contains(own)) sites.push_back({own, variant.profile.title, one.file, true});
    }
  }
  return sites;
}

std::vector<std::string> shipped_sites() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : shipped_files()) {
    if (!file.path.starts_with(kSitesFolder) || !file.path.ends_with(kSiteSuffix)) continue;
    names.emplace_back(
        file.path.substr(kSitesFolder.size(), file.path.size() - kSitesFolder.size() - kSiteSuffix.size()));
  }
  return names;
}

}  // namespace ddl::templates
