/* SPDX-License-Identifier: MIT */
/* Texts in HTML and XML: see markup.h. */
#include "tools/markup.h"

#include <stdio.h>

void put_markup(const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", stdout);
			break;
		case '<':
			fputs("&lt;", stdout);
			break;
		case '>':
			fputs("&gt;", stdout);
			break;
		case '"':
			fputs("&quot;", stdout);
			break;
		case '\'':
			fputs("&#39;", stdout);
			break;
		default:
			/* Characters that XML does not have. */
			putchar((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text);
		}
	}
}
