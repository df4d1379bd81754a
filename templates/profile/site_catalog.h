// Sites by name: the user's own first, then those that ddlrun was built with.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "templates/profile/site_profile.h"

namespace ddl::templates {

/// A profile's text, and what errors call it.
struct SiteText {
  std::string file;
  std::string text;
};

struct SiteName {
  std::string name;
  std::string title;  ///< "" if its profile has none, or an error
  std::string file;
};

class SiteCatalog {
 public:
  using ReadFile = std::function<Result<std::string>(const std::string& path)>;
  /// folders: where the user and the admin keep profiles as NAME.yaml, those of the first before the others'.
  SiteCatalog(std::vector<std::string> folders, ReadFile read_file);

  /// site: a name, or a file, which has a slash or ends in ".yaml". Error: the file cannot be read, or has an error,
  /// with its line; or no profile has the name, with the names that exist.
  Result<SiteProfile> find(const std::string& site) const;
  /// The text that find() would read. Errors as there.
  Result<SiteText> text_of(const std::string& site) const;
  /// All sites by name. If several profiles have a name, only the first is listed.
  std::vector<SiteName> list() const;

 private:
  std::vector<std::string> folders_;
  ReadFile read_file_;
};

/// The names of the profiles that ddlrun was built with, sorted.
std::vector<std::string> shipped_sites();

}  // namespace ddl::templates
