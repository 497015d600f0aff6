// SPDX-License-Identifier: MIT
/*
 * Reads the side file of provenance. It may come from anyone: its size is limited, each
 * value is used only if it has the type that the schema gives it, nothing follows
 * references from one handle to the next, and texts lose their control characters.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "provenance.h"

#define VERSION 1

/* Returns the bytes of the UTF-8 character at @c, 0 if they are not one that Unicode has. */
static size_t character(const unsigned char *c)
{
	const size_t bytes = c[0] < 0x80 ? 1 : c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 :
			     c[0] < 0xf0 ? 3 : c[0] < 0xf5 ? 4 : 0;

	for (size_t i = 1; i < bytes; i++)
		if ((c[i] & 0xc0) != 0x80)
			return 0;
	/* Longer forms than necessary, surrogates, and numbers beyond U+10FFFF. */
	if ((c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] >= 0xa0) ||
	    (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] >= 0x90))
		return 0;
	return bytes;
}

struct printable printable(const char *text)
{
	struct printable made = { "" };
	size_t n = 0, bytes, taken;

	for (const unsigned char *c = (const unsigned char *)(text ? text : ""); *c; c += taken) {
		bytes = character(c);
		taken = bytes ? bytes : 1;
		if (n + taken >= sizeof(made.s))
			break;
		if (!bytes || *c < ' ' || *c == 0x7f || (c[0] == 0xc2 && c[1] < 0xa0)) {
			made.s[n++] = '?';
			continue;
		}
		memcpy(made.s + n, c, bytes);
		n += bytes;
	}
	made.s[n] = '\0';
	return made;
}

/*
 * Reads a regular file of at most @limit bytes, with a zero behind them; NULL with errno. Others
 * could block (a pipe) or have no end (a device).
 */
static char *read_file(const char *path, uint64_t limit, size_t *bytes)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), error = 0;
	struct stat info;
	char *data = NULL;
	ssize_t got = 1;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &info))
		error = errno;
	else if (!S_ISREG(info.st_mode))
		error = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
	else if ((uint64_t)info.st_size > limit)
		error = EFBIG;
	if (!error) {
		data = malloc((size_t)info.st_size + 1);
		error = data ? 0 : ENOMEM;
	}
	*bytes = 0;
	while (!error && got > 0 && *bytes < (size_t)info.st_size) {
		got = read(fd, data + *bytes, (size_t)info.st_size - *bytes);
		if (got < 0)
			error = errno;
		else
			*bytes += (size_t)got;
	}
	close(fd);
	if (error) {
		free(data);
		errno = error;
		return NULL;
	}
	data[*bytes] = '\0';
	return data;
}

yyjson_doc *provenance_read(const char *path, struct text *why)
{
	yyjson_read_err err;
	yyjson_doc *doc;
	yyjson_val *version;
	size_t bytes;
	char *data = read_file(path, PROVENANCE_FILE_MAX, &bytes);

	if (!data) {
		write_text(why, "cannot read '%s': %s; name the file that "
			   "TORCH_SPYRE_PROVENANCE_FILE had while the model was compiled",
			   printable(path).s, strerror(errno));
		return NULL;
	}
	doc = yyjson_read_opts(data, bytes, 0, NULL, &err);
	free(data);
	if (!doc) {
		write_text(why, "cannot read '%s': %s at byte %zu", printable(path).s, err.msg,
			   err.pos);
		return NULL;
	}
	version = yyjson_obj_get(yyjson_doc_get_root(doc), "schemaVersion");
	if (!yyjson_is_int(version) || yyjson_get_sint(version) != VERSION) {
		write_text(why, "cannot read '%s': it is not a side file of provenance of version "
			   "%d", printable(path).s, VERSION);
		yyjson_doc_free(doc);
		return NULL;
	}
	return doc;
}

yyjson_val *provenance_find(yyjson_val *root, const char *event, const char **key)
{
	yyjson_val *kernels = yyjson_obj_get(root, "kernelIdentities"), *name, *kernel;
	size_t i, n;

	yyjson_obj_foreach(kernels, i, n, name, kernel)
	{
		*key = yyjson_get_str(name);
		if (strlen(*key) == 16 && strstr(event, *key))
			return kernel;
	}
	return NULL;
}

yyjson_val *provenance_handle(yyjson_val *root, const char *number)
{
	return number ? yyjson_obj_get(yyjson_obj_get(root, "handles"), number) : NULL;
}

/*
 * Copies line @number of a text, without the blanks around it. Returns the bytes that were
 * searched for it.
 */
static uint64_t copy_line(const char *text, uint64_t bytes, int64_t number, struct printable *line)
{
	const char *start = text;
	size_t length;
	uint64_t before;
	char *copy;

	for (; number > 1 && text; number--) {
		text = strchr(text, '\n');
		text += text ? 1 : 0;
	}
	if (!text)
		return bytes;
	before = (uint64_t)(text - start);
	text += strspn(text, " \t");
	length = strcspn(text, "\r\n");
	copy = strndup(text, length);
	*line = printable(copy);
	free(copy);
	return before + length;
}

/* Returns the place of a source file, which is read if it is not one of the last ones. */
static unsigned int find_source(struct provenance_sources *sources, const char *path)
{
	const unsigned int at = sources->next;
	size_t bytes;

	for (unsigned int i = 0; i < PROVENANCE_SOURCES; i++)
		if (sources->file[i].path && !strcmp(sources->file[i].path, path))
			return i;
	free(sources->file[at].path);
	free(sources->file[at].data);
	sources->file[at].path = strdup(path);
	sources->file[at].data = read_file(path, PROVENANCE_SOURCE_MAX, &bytes);
	sources->file[at].bytes = sources->file[at].data ? bytes : 0;
	sources->searched += sources->file[at].bytes;
	sources->next = (at + 1) % PROVENANCE_SOURCES;
	return at;
}

void provenance_release(struct provenance_sources *sources)
{
	for (unsigned int i = 0; i < PROVENANCE_SOURCES; i++) {
		free(sources->file[i].path);
		free(sources->file[i].data);
	}
	memset(sources, 0, sizeof(*sources));
}

/*
 * The author of the side file chooses the file of which a line is shown. It is read with the
 * rights of the user, and only the user sees the line. The search has a limit, since a side file
 * may have a million steps from the ends of large files.
 */
void provenance_line(struct provenance_sources *sources, yyjson_val *handle,
		     struct provenance_line *line)
{
	yyjson_val *source = yyjson_obj_get(handle, "source");
	yyjson_val *number = yyjson_obj_get(source, "start_line");
	unsigned int at;

	*line = (struct provenance_line){ .file = yyjson_get_str(yyjson_obj_get(source, "file")) };
	if (!line->file || !yyjson_is_int(number) || yyjson_get_sint(number) < 1) {
		line->file = NULL;
		return;
	}
	line->line = yyjson_get_sint(number);
	if (sources->searched >= PROVENANCE_SEARCH_MAX) {
		sources->left_out++;
		return;
	}
	at = find_source(sources, line->file);
	if (sources->file[at].data)
		sources->searched += copy_line(sources->file[at].data, sources->file[at].bytes,
					       line->line, &line->text);
}
