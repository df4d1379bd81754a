// Sites by name: the user's own first, then those that ddlrun was built with.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "templates/profile/site_profile.h"

namespace ddl::templates {

/// A profile's text, and what errors call it.
struct SiteText {
  std::string file;
  std::string text;
  std::string variant;  ///< "g" of lumi-g, where the name is that of a variant; else ""
};

struct SiteName {
  std::string name;
  std::string title;  ///< "" if its profile has none, or an error
  std::string file;
  bool is_variant = false;
};

class SiteCatalog {
 public:
  using ReadFile = std::function<Result<std::string>(const std::string& path)>;
  /// folders: where the user and the admin keep profiles as NAME.yaml, those of the first before the others'.
  SiteCatalog(std::vector<std::string> folders, ReadFile read_file);

  /// The profile of jobs that request these nodes. site: a name, also with a variant's behind it ("lumi-g"), or a file,
  /// which has a slash or ends in ".yaml". Error: the file cannot be read, or has an error, with its line; or no profile
  /// has the name, with the names that exist.
  Result<SiteProfile> find(const std::string& site, const NodeRequest& request = {}) const;
  /// The text that find() would read. Errors as there.
  Result<SiteText> text_of(const std::string& site) const;
  /// All sites by name, each followed by its variants. If several profiles have a name, only the first is listed.
  std::vector<SiteName> list() const;

 private:
  /// Of the profile of exactly this name, if there is one.
  Result<std::optional<SiteText>> named(const std::string& name) const;

  std::vector<std::string> folders_;
  ReadFile read_file_;
};

/// The names of the profiles that ddlrun was built with, without those of variants, sorted.
std::vector<std::string> shipped_sites();

}  // namespace ddl::templates
