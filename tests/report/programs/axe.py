"""What axe-core finds wrong in pages as they are read: in light, in dark, and printed.

  axe.py CHROMIUM PAGE...      with the Python of the environment "axe" (scripts/frameworks)

Prints a line for each finding, and one for each request and message of the browser, which a page must not cause.
Exit status: 0 if the browser has shown all pages, whatever was found; another one if it has not.
"""
import pathlib
import sys

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

LOOKS = {"light": {"color_scheme": "light"}, "dark": {"color_scheme": "dark"},
         "printed": {"media": "print", "color_scheme": "light"}}


def open_page(context, path):
    page = context.new_page()
    address = path.as_uri()

    def on_request(request):
        if request.url.split("#")[0] != address:
            print(f"{path.name}: asks for {request.url}")

    page.on("request", on_request)
    page.on("console", lambda message: print(f"{path.name}: {message.type}: {message.text}"))
    page.on("pageerror", lambda error: print(f"{path.name}: {error}"))
    page.goto(address)
    return page


def print_findings(page, path, look):
    for finding in Axe().run(page).response["violations"]:
        for node in finding["nodes"]:
            print(f"{path.name}, {look}: {finding['id']}: {' '.join(node['failureSummary'].split())} {node['html']}")


def main(chromium, names):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        paths = [pathlib.Path(name).resolve() for name in names]
        # As a user's browser shows them, under their own policies.
        strict = browser.new_context()
        for path in paths:
            open_page(strict, path)
        # The policies would keep axe-core out, too.
        admitting = browser.new_context(bypass_csp=True)
        for path in paths:
            page = open_page(admitting, path)
            for look, media in LOOKS.items():
                page.emulate_media(**media)
                print_findings(page, path, look)
        browser.close()


main(sys.argv[1], sys.argv[2:])
