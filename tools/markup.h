/* SPDX-License-Identifier: MIT */
/* Texts in HTML and XML. Used by spyre-smi and spyre. */
#ifndef TOOLS_MARKUP_H
#define TOOLS_MARKUP_H

/* Prints @text so that it is a text, or the value of an attribute in double quotes. */
void put_markup(const char *text);

#endif /* TOOLS_MARKUP_H */
