"""A hook of MkDocs: what pages link to and the site does not have, as sources and results, is named, not linked."""

import posixpath
import re

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown, page, config, files):
    folder = posixpath.dirname(page.file.src_uri)

    def kept(match):
        text, target = match.group(1), match.group(2)
        if "://" in target or target.startswith("mailto:"):
            return match.group(0)
        path = posixpath.normpath(posixpath.join(folder, target))
        return match.group(0) if files.get_file_from_path(path) else text

    return LINK.sub(kept, markdown)
