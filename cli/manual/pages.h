// The manual pages, from the tables and texts that ddlrun and the documents have anyway: the table of options, the keys
// of a site's profile, the header of libddl, and pages of docs/reference. Pure.
#pragma once

#include <string>

#include "cli/manual/c_header.h"
#include "cli/manual/document.h"
#include "cli/options/help_pages.h"

namespace ddl::cli {

/// The page in the macros of man(7), for man -l.
std::string manual_page(ManualPage page);

/// A document that ddlrun was built with: "docs/reference/hostfile.md". It must be one that cli/CMakeLists.txt lists.
Document embedded_markdown(std::string_view path);
/// <ddl/ddl.h>, as ddlrun was built with it.
Header embedded_header();

}  // namespace ddl::cli
