/* SPDX-License-Identifier: MIT */
/* Requests: a line and headers, which are checked and otherwise ignored; no bodies. */
#include "config.h"

#include <string.h>
#include <strings.h>

#include "tools/exporter/exporter.h"

/* The parts of the first line, without blanks; not terminated. */
struct line {
	const char *method, *target, *version;
	size_t method_bytes, target_bytes, version_bytes;
};

/* Returns the bytes up to the end of the headers, 0 if it is not there yet. */
static size_t find_end(const char *bytes, size_t count)
{
	size_t i;

	for (i = 0; i + 1 < count; i++) {
		if (bytes[i] != '\n')
			continue;
		if (bytes[i + 1] == '\n')
			return i + 2;
		if (i + 2 < count && bytes[i + 1] == '\r' && bytes[i + 2] == '\n')
			return i + 3;
	}
	return 0;
}

/* Text has no control characters but the ends of lines and tabs. */
static bool is_text(const char *bytes, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		unsigned char c = (unsigned char)bytes[i];

		if ((c < ' ' && c != '\r' && c != '\n' && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

static const char *word(const char *at, const char *end, size_t *bytes)
{
	*bytes = 0;
	while (at + *bytes < end && at[*bytes] != ' ')
		++*bytes;
	return at;
}

/* "METHOD SP target SP HTTP/1.x"; returns false for any other line. */
static bool split(const char *bytes, size_t count, struct line *line)
{
	const char *end = memchr(bytes, '\n', count);

	if (!end)
		return false;
	end -= end > bytes && end[-1] == '\r';
	line->method = word(bytes, end, &line->method_bytes);
	if (!line->method_bytes || line->method + line->method_bytes == end)
		return false;
	line->target = word(line->method + line->method_bytes + 1, end, &line->target_bytes);
	if (!line->target_bytes || line->target + line->target_bytes == end)
		return false;
	line->version = word(line->target + line->target_bytes + 1, end, &line->version_bytes);
	return line->version + line->version_bytes == end && line->version_bytes == 8 &&
	       !memcmp(line->version, "HTTP/1.", 7) &&
	       (line->version[7] == '0' || line->version[7] == '1');
}

static bool is(const char *text, size_t bytes, const char *expected)
{
	return bytes == strlen(expected) && !memcmp(text, expected, bytes);
}

/* Clients of HTTP/1.1 may name the server in the target: "http://HOST/metrics". */
static void skip_server(struct line *line)
{
	static const char scheme[] = "http://", root[] = "/";
	const size_t before = sizeof(scheme) - 1;
	const char *path;

	if (line->target_bytes < before || strncasecmp(line->target, scheme, before))
		return;
	path = memchr(line->target + before, '/', line->target_bytes - before);
	line->target_bytes -= path ? (size_t)(path - line->target) : line->target_bytes - 1;
	line->target = path ? path : root;
}

enum exporter_answer exporter_parse(const char *bytes, size_t count, bool *head)
{
	size_t end = find_end(bytes, count), query;
	struct line line;

	*head = false;
	if (!is_text(bytes, end ? end : count))
		return EXPORTER_BAD_REQUEST;
	if (!end)
		return count >= EXPORTER_MAX_REQUEST ? EXPORTER_TOO_LARGE : EXPORTER_INCOMPLETE;
	if (!split(bytes, end, &line))
		return EXPORTER_BAD_REQUEST;
	skip_server(&line);
	if (line.target[0] != '/')
		return EXPORTER_BAD_REQUEST;
	*head = is(line.method, line.method_bytes, "HEAD");
	if (!*head && !is(line.method, line.method_bytes, "GET"))
		return EXPORTER_BAD_METHOD;
	/* Scrapers may be configured with parameters. */
	for (query = 0; query < line.target_bytes && line.target[query] != '?'; query++)
		;
	if (is(line.target, query, "/metrics"))
		return EXPORTER_METRICS;
	return is(line.target, query, "/") ? EXPORTER_INDEX : EXPORTER_NOT_FOUND;
}
