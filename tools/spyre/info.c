// SPDX-License-Identifier: MIT
/* spyre info: prints versions, cards, submission paths and the environment. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <yyjson.h>

#include "host.h"
#include "spyre.h"
#include "tools/links.h"

/* The submission path of a card, such as "ioctl", and why it was chosen. */
struct path {
	const char *name;
	char reason[512];
};

struct info {
	char library[32];
	char kernel[128];
	char module[64]; /* "not loaded", "loaded" or a version */
	spyre_device_properties *cards;
	struct path *paths;
	spyre_peer_path *links; /* of card a to card b: [a * count + b] */
	int count;
};

static const char *path_name(spyre_submit_path path)
{
	switch (path) {
	case SPYRE_SUBMIT_DIRECT:
		return "direct";
	case SPYRE_SUBMIT_IOCTL:
		return "ioctl";
	case SPYRE_SUBMIT_URING:
		return "uring";
	case SPYRE_SUBMIT_SQPOLL:
		return "sqpoll";
	default:
		return "unknown";
	}
}

/*
 * The submission path is chosen when a card is opened. A card that cannot be opened
 * is not an error here; its error text replaces the reason.
 */
static void find_path(int index, struct path *path)
{
	spyre_submit_path submit_path;
	spyre_context *context;
	const char *reason;

	path->name = "unknown";
	if (spyre_context_create(index, 0, &context)) {
		snprintf(path->reason, sizeof(path->reason), "%s", spyre_last_error());
		return;
	}
	if (!spyre_context_get_submit_path(context, &submit_path, &reason)) {
		path->name = path_name(submit_path);
		snprintf(path->reason, sizeof(path->reason), "%s", reason);
	}
	(void)spyre_context_destroy(context);
}

static int find_links(struct info *info)
{
	spyre_status status;

	for (int a = 0; a < info->count; a++) {
		for (int b = 0; b < info->count; b++) {
			status = spyre_device_get_peer_path(a, b,
							    &info->links[a * info->count + b]);
			if (status)
				return complain_status(status, "cannot find the link of cards %d "
						       "and %d", a, b);
		}
	}
	return EXIT_OK;
}

static int collect(struct info *info)
{
	uint32_t version = spyre_version();
	spyre_status status;

	snprintf(info->library, sizeof(info->library), "%u.%u.%u", version >> 16,
		 version >> 8 & 0xff, version & 0xff);
	host_kernel_release(info->kernel, sizeof(info->kernel));
	host_module_version(info->module, sizeof(info->module));
	if (!*info->module)
		snprintf(info->module, sizeof(info->module), "%s",
			 host_module_loaded() ? "loaded" : "not loaded");
	status = spyre_device_count(&info->count);
	if (status)
		return complain_status(status, "cannot count the cards");
	info->cards = calloc(info->count ? info->count : 1, sizeof(*info->cards));
	info->paths = calloc(info->count ? info->count : 1, sizeof(*info->paths));
	info->links = calloc((size_t)info->count * info->count + 1, sizeof(*info->links));
	if (!info->cards || !info->paths || !info->links)
		return complain(EXIT_DEVICE, "cannot list the cards: no memory for %d of them",
				info->count);
	for (int i = 0; i < info->count; i++) {
		info->cards[i].struct_size = sizeof(info->cards[i]);
		status = spyre_device_get_properties(i, &info->cards[i]);
		if (status)
			return complain_status(status, "cannot query card %d", i);
		find_path(i, &info->paths[i]);
	}
	return find_links(info);
}

static const char *list_of_cards(const char **name)
{
	const char *list;

	*name = "SPYRE_DEVICES";
	list = getenv(*name);
	if (list && *list)
		return list;
	*name = "SPYRE_VISIBLE_DEVICES";
	return getenv(*name);
}

static bool has_card(const struct info *info, unsigned long long physical)
{
	for (int i = 0; i < info->count; i++)
		if (info->cards[i].physical_index >= 0 &&
		    (unsigned long long)info->cards[i].physical_index == physical)
			return true;
	return false;
}

/* Reads an entry of a list up to its comma; false if it is no number, but a bus id or UUID. */
static bool entry_number(const char *entry, unsigned long long *number)
{
	static const char blanks[] = " \t\n\v\f\r";
	const char *digits = entry + strspn(entry, blanks);
	char *end;

	*number = strtoull(digits, &end, 10);
	if (end == digits)
		return false;
	end += strspn(end, blanks);
	return !*end || *end == ',';
}

/*
 * The library drops numbers of absent cards, so that one list can serve several machines. This
 * command reports them, since its reader may wonder where the card is.
 */
static int report_absent(const struct info *info)
{
	const char *name, *list = list_of_cards(&name), *comma;
	unsigned long long physical;
	int code = EXIT_OK;

	for (const char *entry = list; entry; entry = comma ? comma + 1 : NULL) {
		comma = strchr(entry, ',');
		if (entry_number(entry, &physical) && !has_card(info, physical))
			code = complain(EXIT_USAGE,
					"cannot show card %llu of %s=\"%s\": there is none, or "
					"FLEX_DEVICE or its virtual functions hide it; unset %s to "
					"list the cards that there are",
					physical, name, list, name);
	}
	return code;
}

/* The variables that the library reads. */
static bool is_ours(const char *variable)
{
	static const char *const others[] = {
		"AIU_WORLD_SIZE=", "FLEX_DEVICE=", "FLEX_HDMA_MODE_FULL=", "FLEX_RDMA_MODE_FULL=",
		"SENCORES=",
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strncmp(variable, others[i], strlen(others[i])))
			return true;
	return !strncmp(variable, "SPYRE_", 6);
}

static const char *backend_name(spyre_backend backend)
{
	return backend == SPYRE_BACKEND_DRM ? "drm" : "embedded";
}

static void print_card(const spyre_device_properties *p, const struct path *path)
{
	printf("card %d    %s\n", p->index, p->name);
	printf("  uuid            %s\n", p->uuid);
	printf("  bus id          %s (physical index %d)\n", p->bus_id, p->physical_index);
	printf("  backend         %s%s%s\n", backend_name(p->backend), *p->node ? ", " : "",
	       p->node);
	printf("  cores           %u at %u MHz, %u KiB LX each\n", p->num_cores,
	       p->clock_khz / 1000, p->lx_bytes >> 10);
	printf("  memory          %llu MiB, sticks of %u bytes\n",
	       (unsigned long long)p->memory_bytes >> 20, p->stick_bytes);
	printf("  arithmetic      %s\n", *p->unit ? p->unit : "unknown");
	printf("  submission      %s (%s)\n", path->name, path->reason);
}

/* "switch: 1, 2, 3; host: 4, 5": the other cards that each link leads to. */
static void print_links(const struct info *info, int card)
{
	const spyre_peer_path *link = info->links + (size_t)card * info->count;
	const char *before = "";

	printf("  links           ");
	for (int i = 0; i < NUM_LINKS; i++) {
		bool first = true;

		for (int peer = 0; peer < info->count; peer++) {
			if (peer == card || link[peer] != links_by_speed[i])
				continue;
			if (first)
				printf("%s%s: %d", before, link_name(link[peer]), peer);
			else
				printf(", %d", peer);
			first = false;
			before = "; ";
		}
	}
	puts(*before ? "" : "no other card");
}

static void print_text(const struct info *info)
{
	bool any = false;

	printf("spyre     %s\nlibspyre  %s\nkernel    %s, " HOST_MODULE " %s\n", PACKAGE_VERSION,
	       info->library, info->kernel, info->module);
	printf("cards     %d\n", info->count);
	for (int i = 0; i < info->count; i++) {
		print_card(&info->cards[i], &info->paths[i]);
		print_links(info, i);
	}
	puts("environment");
	for (char **variable = environ; *variable; variable++) {
		if (!is_ours(*variable))
			continue;
		printf("  %s\n", *variable);
		any = true;
	}
	if (!any)
		puts("  nothing set");
}

static void add_links(yyjson_mut_doc *doc, yyjson_mut_val *card, const struct info *info,
		      int index)
{
	yyjson_mut_val *peers = yyjson_mut_obj_add_arr(doc, card, "peers");

	for (int peer = 0; peer < info->count; peer++) {
		yyjson_mut_val *entry;

		if (peer == index)
			continue;
		entry = yyjson_mut_arr_add_obj(doc, peers);
		yyjson_mut_obj_add_int(doc, entry, "index", peer);
		yyjson_mut_obj_add_str(doc, entry, "link",
				       link_name(info->links[index * info->count + peer]));
	}
}

static void add_card(yyjson_mut_doc *doc, yyjson_mut_val *array, const struct info *info, int index)
{
	const spyre_device_properties *p = &info->cards[index];
	const struct path *path = &info->paths[index];
	yyjson_mut_val *card = yyjson_mut_arr_add_obj(doc, array);

	yyjson_mut_obj_add_sint(doc, card, "index", p->index);
	yyjson_mut_obj_add_sint(doc, card, "physical_index", p->physical_index);
	yyjson_mut_obj_add_str(doc, card, "name", p->name);
	yyjson_mut_obj_add_str(doc, card, "uuid", p->uuid);
	yyjson_mut_obj_add_str(doc, card, "bus_id", p->bus_id);
	yyjson_mut_obj_add_str(doc, card, "backend", backend_name(p->backend));
	if (*p->node)
		yyjson_mut_obj_add_str(doc, card, "node", p->node);
	else
		yyjson_mut_obj_add_null(doc, card, "node");
	yyjson_mut_obj_add_uint(doc, card, "cores", p->num_cores);
	yyjson_mut_obj_add_uint(doc, card, "lx_bytes", p->lx_bytes);
	yyjson_mut_obj_add_uint(doc, card, "stick_bytes", p->stick_bytes);
	yyjson_mut_obj_add_uint(doc, card, "clock_hz", p->clock_khz * 1000ull);
	yyjson_mut_obj_add_uint(doc, card, "memory_bytes", p->memory_bytes);
	yyjson_mut_obj_add_str(doc, card, "unit", p->unit);
	yyjson_mut_obj_add_str(doc, card, "submit_path", path->name);
	yyjson_mut_obj_add_str(doc, card, "submit_reason", path->reason);
	add_links(doc, card, info, index);
}

static int print_json(const struct info *info)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc), *cards, *environment;
	char *text;

	yyjson_mut_doc_set_root(doc, root);
	yyjson_mut_obj_add_uint(doc, root, "schema_version", 1);
	yyjson_mut_obj_add_str(doc, root, "spyre", PACKAGE_VERSION);
	yyjson_mut_obj_add_str(doc, root, "libspyre", info->library);
	yyjson_mut_obj_add_str(doc, root, "kernel", info->kernel);
	yyjson_mut_obj_add_str(doc, root, "module", info->module);
	cards = yyjson_mut_obj_add_arr(doc, root, "cards");
	for (int i = 0; i < info->count; i++)
		add_card(doc, cards, info, i);
	environment = yyjson_mut_obj_add_arr(doc, root, "environment");
	for (char **variable = environ; *variable; variable++)
		if (is_ours(*variable))
			yyjson_mut_arr_add_str(doc, environment, *variable);
	/* The environment may contain invalid UTF-8. */
	text = yyjson_mut_write(doc, YYJSON_WRITE_ALLOW_INVALID_UNICODE, NULL);
	yyjson_mut_doc_free(doc);
	if (!text)
		return complain(EXIT_DEVICE, "cannot print the report: no memory for its JSON text");
	puts(text);
	free(text);
	return EXIT_OK;
}

static int run_info(int argc, char **argv)
{
	struct info info = {0};
	bool json = false;
	int code;

	code = parse_json_only(argc, argv, &json);
	if (code)
		return code;
	code = collect(&info);
	if (!code && json)
		code = print_json(&info);
	else if (!code)
		print_text(&info);
	if (!code)
		code = report_absent(&info);
	free(info.cards);
	free(info.paths);
	free(info.links);
	return finish_output(code);
}

const struct command command_info = {
	.name = "info",
	.summary = "print versions, cards and environment",
	.help = "[--json]\n"
		"Prints the versions of command, library, kernel and module, the visible cards "
		"with\nthe links between them and the environment variables that the library reads. Opens\n"
		"each card for a moment to see how submissions reach it. Exit status 2 if SPYRE_DEVICES\n"
		"lists the number of a card that is not visible.\n",
	.run = run_info,
};
