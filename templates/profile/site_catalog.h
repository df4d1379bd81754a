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

  /// A name, or a file: what has a slash or ends in ".yaml". Error: the file cannot be read, or has an error, which
  /// comes with its line; or a name that no profile has, with those that there are.
  Result<SiteProfile> find(const std::string& site) const;
  /// Where find() would read it. Errors as there.
  Result<SiteText> text_of(const std::string& site) const;
  /// All that have a name, by it; a profile that stands before another of its name is there once.
  std::vector<SiteName> list() const;

 private:
  std::vector<std::string> folders_;
  ReadFile read_file_;
};

/// Of the profiles that ddlrun was built with, by name.
std::vector<std::string> shipped_sites();

}  // namespace ddl::templates
