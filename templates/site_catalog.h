// Sites by name: the user's own first, then those that ddlrun was built with.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "templates/site_profile.h"

namespace ddl::templates {

class SiteCatalog {
 public:
  using ReadFile = std::function<Result<std::string>(const std::string& path)>;
  /// own_folder: where the user keeps profiles as NAME.yaml; "" for nowhere.
  SiteCatalog(std::string own_folder, ReadFile read_file);

  /// A name, or a file: what has a slash or ends in ".yaml". Error: the file cannot be read, or has an error, which
  /// comes with its line; kNotFound for a name that no profile has, with those that there are.
  Result<SiteProfile> find(const std::string& site) const;

 private:
  std::string own_folder_;
  ReadFile read_file_;
};

/// Of the profiles that ddlrun was built with, by name.
std::vector<std::string> shipped_sites();

}  // namespace ddl::templates
