/* SPDX-License-Identifier: MIT */
/* topo -m and topo -p2p: the links between cards, in the form of nvidia-smi's. */
#include "config.h"

#include "tools/links.h"
#include "tools/smi/json.h"

/* CARD and a number below 10,000. */
#define CELL 9
#define CPU_CELL 16

/* The symbols are those of nvidia-smi, where it has one. */
static const struct {
	const char *symbol;
	const char *meaning;
} links[NUM_LINKS] = {
	[SPYRE_PEER_SAME_CARD] = { "CARD", "two virtual functions of one card" },
	[SPYRE_PEER_SWITCH] = { "PIX", "from card to card, by one PCIe switch" },
	[SPYRE_PEER_HOST] = { "PHB", "over the PCIe host bridge, through the memory of the host" },
	[SPYRE_PEER_NONE] = { "NONE", "no copies: other process, other kind of card or old module" },
};

static spyre_peer_path path_of(const struct smi_snapshot *snapshot, int a, int b)
{
	spyre_peer_path path = SPYRE_PEER_NONE;

	/* Entries of one snapshot are valid arguments. */
	(void)spyre_telemetry_peer_path(&snapshot->cards[a], &snapshot->cards[b], &path);
	return path;
}

static const char *known(const char *list)
{
	return *list ? list : "N/A";
}

static void print_name(int card)
{
	char name[16];

	snprintf(name, sizeof(name), "CARD%d", card);
	printf("%-*s", CELL, name);
}

/* The start of the first row: a column for each chosen card. */
static void print_names(const struct smi_snapshot *snapshot)
{
	int card;

	printf("%*s", CELL, "");
	for (card = 0; card < snapshot->num_cards; card++)
		if (snapshot->chosen[card])
			print_name(card);
}

static void print_legend(void)
{
	int i;

	printf("\nLegend:\n\n  %-4s = the card itself\n", "X");
	for (i = 0; i < NUM_LINKS; i++)
		printf("  %-4s = %s\n", links[links_by_speed[i]].symbol,
		       links[links_by_speed[i]].meaning);
}

static void print_matrix(const struct smi_snapshot *snapshot)
{
	int row, column;

	print_names(snapshot);
	printf("%-*sNUMA Affinity\n", CPU_CELL, "CPU Affinity");
	for (row = 0; row < snapshot->num_cards; row++) {
		const spyre_telemetry_card *card = &snapshot->cards[row];

		if (!snapshot->chosen[row])
			continue;
		print_name(row);
		for (column = 0; column < snapshot->num_cards; column++)
			if (snapshot->chosen[column])
				printf("%-*s", CELL, row == column ? " X" :
				       links[path_of(snapshot, row, column)].symbol);
		printf("%-*s%s\n", CPU_CELL, known(card->cpu_list), known(card->numa_list));
	}
	print_legend();
}

/* One row for each pair: a matrix as CSV would have columns that depend on the machine. */
static void print_csv(const struct smi_snapshot *snapshot, bool header)
{
	int row, column;

	if (header)
		puts("index, peer, link, cpu_affinity, numa_affinity");
	for (row = 0; row < snapshot->num_cards; row++) {
		const spyre_telemetry_card *card = &snapshot->cards[row];

		for (column = 0; column < snapshot->num_cards; column++) {
			if (!snapshot->chosen[row] || !snapshot->chosen[column])
				continue;
			printf("%d, %d, %s, ", row, column,
			       row == column ? "self" : link_name(path_of(snapshot, row, column)));
			smi_print_cell(*card->cpu_list ? card->cpu_list : "[N/A]");
			fputs(", ", stdout);
			smi_print_cell(*card->numa_list ? card->numa_list : "[N/A]");
			putchar('\n');
		}
	}
}

static bool add_list(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key,
		     const char *list)
{
	return *list ? yyjson_mut_obj_add_str(doc, object, key, list) :
		       yyjson_mut_obj_add_null(doc, object, key);
}

static bool fill_links(yyjson_mut_doc *doc, yyjson_mut_val *list,
		       const struct smi_snapshot *snapshot, int card)
{
	int peer;

	for (peer = 0; peer < snapshot->num_cards; peer++) {
		yyjson_mut_val *link;

		if (!snapshot->chosen[peer] || peer == card)
			continue;
		link = yyjson_mut_arr_add_obj(doc, list);
		if (!link || !yyjson_mut_obj_add_int(doc, link, "index", peer) ||
		    !yyjson_mut_obj_add_str(doc, link, "link", link_name(path_of(snapshot, card, peer))))
			return false;
	}
	return true;
}

static bool fill_cards(yyjson_mut_doc *doc, yyjson_mut_val *list,
		       const struct smi_snapshot *snapshot, const struct smi_options *options)
{
	int i;

	(void)options;
	for (i = 0; i < snapshot->num_cards; i++) {
		const spyre_telemetry_card *card = &snapshot->cards[i];
		yyjson_mut_val *object, *peers;

		if (!snapshot->chosen[i])
			continue;
		object = yyjson_mut_arr_add_obj(doc, list);
		if (!object || !yyjson_mut_obj_add_int(doc, object, "index", i) ||
		    !add_list(doc, object, "uuid", card->properties.uuid) ||
		    !add_list(doc, object, "bus_id", card->properties.bus_id) ||
		    !add_list(doc, object, "cpu_affinity", card->cpu_list) ||
		    !add_list(doc, object, "numa_affinity", card->numa_list))
			return false;
		peers = yyjson_mut_obj_add_arr(doc, object, "peers");
		if (!peers || !fill_links(doc, peers, snapshot, i))
			return false;
	}
	return true;
}

/* True if a card reaches another one's memory in the way of a letter of topo -p2p. */
static bool has_access(spyre_peer_path path, char way)
{
	switch (way) {
	case 'r':
	case 'w':
		return path != SPYRE_PEER_NONE;
	case 'p':
		return path == SPYRE_PEER_SWITCH || path == SPYRE_PEER_HOST;
	default:
		return false;	/* the cards have no NVLink and no atomics on others' memory */
	}
}

static void print_access(const struct smi_snapshot *snapshot, char way)
{
	int row, column;

	print_names(snapshot);
	putchar('\n');
	for (row = 0; row < snapshot->num_cards; row++) {
		if (!snapshot->chosen[row])
			continue;
		print_name(row);
		for (column = 0; column < snapshot->num_cards; column++)
			if (snapshot->chosen[column])
				printf("%-*s", CELL, row == column ? " X" :
				       has_access(path_of(snapshot, row, column), way) ? "OK" : "NS");
		putchar('\n');
	}
	puts("\nLegend:\n\n  X    = the card itself\n  OK   = supported\n  NS   = not supported");
}

bool smi_topology(const struct smi_snapshot *snapshot, const struct smi_options *options)
{
	if (options->format == SMI_JSON)
		return smi_print_document("devices", fill_cards, snapshot, options);
	if (options->access)
		print_access(snapshot, options->access);
	else if (options->format == SMI_CSV)
		print_csv(snapshot, !options->no_header);
	else
		print_matrix(snapshot);
	return true;
}
