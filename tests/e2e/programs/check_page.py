"""Parses a page of a report strictly, as the HTML standard has it, and sees that it loads and runs nothing.

    check_page.py [--script] FILE

--script: the page may have a script of its own, as a timeline's has.

Exit status: 0, valid; 1, not, with what is wrong; 77, there is no html5lib.
"""
import re
import sys

try:
    import html5lib
except ImportError:
    sys.exit(77)

# What names something to be loaded, or a place to go to.
LINKS = {"action", "background", "cite", "data", "formaction", "href", "manifest", "ping", "poster", "src", "srcset"}


def problems(page, may_have_script):
    parser = html5lib.HTMLParser(namespaceHTMLElements=False)
    tree = parser.parse(page)
    for (line, column), code, values in parser.errors:
        yield f"{line}:{column}: {html5lib.constants.E[code] % values}"
    for element in tree.iter():
        if not isinstance(element.tag, str):
            continue
        name = element.tag.rpartition("}")[2]
        if name == "script" and not may_have_script or name in ("iframe", "object", "embed", "link", "base"):
            yield f"there is an element {name}"
        for attribute, value in element.attrib.items():
            attribute = attribute.rpartition("}")[2].rpartition(":")[2]  # also xlink:href
            if attribute in LINKS and not value.startswith("#"):
                yield f'{name} has {attribute}="{value}"'
            if attribute.startswith("on"):
                yield f"{name} has a script in {attribute}"
            if attribute == "style" and "url(" in value:
                yield f"{name} has a style with url()"
        if name == "style" and re.search(r"url\(|@import", element.text or ""):
            yield "a style loads something"
    policies = [element.get("content", "") for element in tree.iter("meta")
                if element.get("http-equiv", "").lower() == "content-security-policy"]
    if len(policies) != 1 or not policies[0].startswith("default-src 'none';"):
        yield f"its policies are {policies}"


arguments = sys.argv[1:]
is_timeline = arguments[0] == "--script"
with open(arguments[-1], encoding="utf-8") as file:
    found = list(problems(file.read(), is_timeline))
print("\n".join(found), end="")
sys.exit(1 if found else 0)
