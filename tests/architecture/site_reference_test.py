#!/usr/bin/env python3
"""Checks what docs/site/reference.py makes of a manual page: site_reference_test.py SOURCE"""

import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(sys.argv.pop(1)) / "docs/site"))
import reference  # noqa: E402

PAGE = r"""
.TH TENSORSMITH\-DB 1 2030-01-02 "tensorsmith 2.3.4" "User Commands"
.SH NAME
tensorsmith\-db \- Look into it
.SH SYNOPSIS
.B tensorsmith db
[\fIoptions\fR] \fIfile\fR...
.br
.B tensorsmith db
\fIcommand\fR ...
.SH DESCRIPTION
Look into it with \(gadb info\(ga.
.SH ARGUMENTS
.TP
\fIfile\fR...
Files
.SH COMMANDS
.SS Basic commands:
.TP
.BR tensorsmith\-db\-info (1)
Tasks | records
.SS Others
.TP
.BR tensorsmith\-db\-search\-all (1)
All
.SH OPTIONS
.TP
\fB\-h\fR, \fB\-\-help\fR
Print this
.SS Advanced
.TP
\fB\-\-loss\fR \fITEXT\fR
A loss <of> it
(one of \fBa\fR, \fBb\fR; default \fBa\fR)
.SH EXAMPLES
.EX
  tensorsmith db info it.db
\&.BR is no macro here
.EE
.SH EXIT STATUS
0: success.
""".strip()


class Reference(unittest.TestCase):
    def setUp(self):
        self.manual = reference.sections(PAGE)

    def test_commands(self):
        self.assertEqual(
            list(reference.commands_below(self.manual)),
            [("Basic commands:", "db-info", "Tasks | records"), ("Others", "db-search-all", "All")],
        )
        table = "\n".join(reference.overview(self.manual))
        self.assertIn("Basic commands:\n\n| command", table)
        self.assertIn("| [db-info](#tensorsmith-db-info) | Tasks &#124; records |", table)

    def test_options_have_their_groups(self):
        html = "".join(reference.definitions(self.manual["OPTIONS"]))
        self.assertIn("<dt><code>-h</code>, <code>--help</code></dt><dd>Print this</dd></dl>", html)
        self.assertIn("<strong>Advanced</strong>", html)
        self.assertIn(
            "<dt><code>--loss</code> <var>TEXT</var></dt>"
            "<dd>A loss &lt;of&gt; it (one of <code>a</code>, <code>b</code>; default <code>a</code>)</dd>",
            html,
        )

    def test_a_command(self):
        out = []
        reference.command(self.manual, ["db"], out)
        text = "\n".join(out)
        for part in ("## db\n", "with <code>db info</code>.", "tensorsmith db [options] file...\ntensorsmith db command ...",
                     "```text\ntensorsmith db info it.db\n```", "<dt><var>file</var>...</dt><dd>Files</dd>"):
            self.assertIn(part, text)


if __name__ == "__main__":
    unittest.main()
