# SPDX-License-Identifier: MIT
#
# Prints the commands of a document's ```sh blocks, one a line: those between the headings FROM
# and TO (all, if both are empty). A line that ends with a backslash goes on in the next. Each
# section starts in the checkout, since that is where readers are who come to it by a link.

BEGIN { wanted = from == "" }
/^#/ && !block {
	if (from != "" && index($0, from))
		wanted = 1
	else if (to != "" && index($0, to))
		wanted = 0
	section = $0
}
/^```/ {
	block = !block
	inside = block && $0 == "```sh" && wanted
	if (inside && section != "" && section ~ /^## /) {
		print "cd ~/spyre"
		section = ""
	}
	next
}
inside && sub(/\\$/, "") { line = line $0; next }
inside && line $0 != "" { print line $0; line = "" }
