// The manual pages, from the tables and texts that ddlrun and the documents have anyway: the table of options, the keys
// of a site's profile, the header of libddl, and pages of docs/reference. Pure.
#pragma once

#include <span>
#include <string>

#include "cli/manual/c_header.h"
#include "cli/manual/document.h"
#include "cli/options/help_pages.h"
#include "templates/shipped_files.h"

namespace ddl::cli {

/// The page in the macros of man(7), for man -l.
std::string manual_page(ManualPage page);

/// The texts of which pages are made, by path below the root of the sources: cli/CMakeLists.txt lists them, and the
/// build puts them into ddlrun. They live as long as the program.
std::span<const templates::ShippedFile> embedded_files();
/// One of them, a document: "docs/reference/hostfile.md".
Document embedded_markdown(std::string_view path);
/// <ddl/ddl.h>, as ddlrun was built with it.
Header embedded_header();

}  // namespace ddl::cli
