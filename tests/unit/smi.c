/* SPDX-License-Identifier: MIT */
/* Runs spyre-smi like its users: arguments, exit statuses, valid CSV and JSON. */
#include "config.h"
#include "suite.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <yyjson.h>

#include "tests/unit/fake_cards.h"

static char output[1 << 16];

/* Runs spyre-smi, captures standard output in output[], and returns its exit status. */
static int smi(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int smi(const char *format, ...)
{
	const char *build = getenv("SPYRE_BUILDDIR");
	char command[4096];
	va_list args;
	size_t used;
	FILE *pipe;
	int status;

	used = snprintf(command, sizeof(command), "'%s/tools/spyre-smi' ", build ? build : ".");
	va_start(args, format);
	used += vsnprintf(command + used, sizeof(command) - used, format, args);
	va_end(args);
	ck_assert_uint_lt(used + 16, sizeof(command));
	strcat(command, " 2>/dev/null");
	pipe = popen(command, "r");
	ck_assert_ptr_nonnull(pipe);
	used = fread(output, 1, sizeof(output) - 1, pipe);
	output[used] = '\0';
	status = pclose(pipe);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void setup(void)
{
	char pages[128];

	fake_begin();
	snprintf(pages, sizeof(pages), "%s/pages", fake_root());
	setenv("SPYRE_TELEMETRY_DIR", pages, 1);
	unsetenv("SPYRE_DEVICES");
	fake_file("/proc/uptime", "1\n");
}

static void two_cards(void)
{
	fake_card(0, 0, "/dev/null");
	fake_card(1, 1, "/dev/zero");
	fake_open_node(4242, "a,\"b", 5, "/dev/zero", 7, 437 << 10);
}

static int num_lines(void)
{
	int lines = 0;
	char *at;

	for (at = output; (at = strchr(at, '\n')); at++)
		lines++;
	return lines;
}

/* Splits a CSV line with ", " between cells and removes quotes; returns -1 if it is malformed. */
static int split(const char *line, char cells[][128], int capacity)
{
	int count = 0;
	size_t used;

	for (;;) {
		bool quoted = *line == '"';

		ck_assert_int_lt(count, capacity);
		line += quoted;
		for (used = 0; *line && *line != '\n'; line++) {
			if (quoted ? *line == '"' && line[1] != '"' : *line == ',')
				break;
			if (*line == '"' && (!quoted || *++line != '"'))
				return -1;
			ck_assert_uint_lt(used, 127);
			cells[count][used++] = *line;
		}
		cells[count++][used] = '\0';
		if (quoted && *line++ != '"')
			return -1;
		if (*line == '\n' || !*line)
			return count;
		if (strncmp(line, ", ", 2))
			return -1;
		line += 2;
	}
}

/* Lists the names of --help-query-<what>; the strings live in @buffer. */
static int list_fields(const char *what, char names[][64], char json[][64], int capacity)
{
	char *line, *end, *key;
	int count = 0;

	ck_assert_int_eq(smi("--help-query-%s", what), 0);
	for (line = output; *line; line = strchr(line, '\n') + 1) {
		if (*line != '"')
			continue;
		end = strchr(line + 1, '"');
		ck_assert_int_lt(count, capacity);
		snprintf(names[count], 64, "%.*s", (int)(end - line - 1), line + 1);
		key = strstr(line, "JSON: ") + 6;
		snprintf(json[count++], 64, "%.*s", (int)strcspn(key, "."), key);
	}
	return count;
}

START_TEST(no_cards)
{
	ck_assert_int_eq(smi(" "), 9);
	ck_assert_str_eq(output, "");
	ck_assert_int_eq(smi("-L"), 9);
	ck_assert_int_eq(smi("--query-device=name --format=csv,noheader"), 9);
	ck_assert_str_eq(output, "");
	ck_assert_int_eq(smi("-l 0.01 -c 2"), 9);
}
END_TEST

START_TEST(no_cards_is_still_json)
{
	yyjson_doc *doc;

	ck_assert_int_eq(smi("--query-device=name --format=json"), 9);
	doc = yyjson_read(output, strlen(output), 0);
	ck_assert_ptr_nonnull(doc);
	ck_assert(yyjson_is_arr(yyjson_obj_get(yyjson_doc_get_root(doc), "devices")));
	yyjson_doc_free(doc);
}
END_TEST

static const char *const bad_arguments[] = {
	"--no-such-option", "-x", "-L -x", "-q -x -d MEMORY", "-q -x --format=json", "-f",
	"-q -f", "-q --filename=", "events --filename=a", "--prometheus -f a", "diag -f a", "topo -p2p", "topo -p2p x", "topo -p2p rw",
	"topo -p2p r --format=csv", "diag -r 4", "diag -r", "extra", "-L -q", "-L --query-device=name",
	"--query-device=", "--query-device=no.such", "--query-device=name,,uuid",
	"--query-device=name,", "--query-device", "--query-compute-apps=memory.used",
	"--query-device=name --format=xml", "--query-device=name --format=csv,json",
	"--query-device=name --format=noheader", "--query-device=name --format=",
	"--query-device=name --format=json,nounits", "--format=json", "--format=csv", "-L --format=csv",
	"-q --format=csv", "-q -d NOISE", "-q -d", "-d MEMORY", "-l", "-l 0", "-l -1", "-l x",
	"-l nan", "-l 1e9", "-l 1s", "-c 3", "-l 1 -c 0", "-l 1 -c -1", "-l 1 -c x", "--loop-ms=0",
	"-i", "topo x", "topo -q", "-m -L", "topo -r", "topo -m -l 1", "topo -m --format=xml",
	"topo -m --format=csv,nounits", "dmon -d 0.001", "dmon -s", "dmon -s x", "dmon -q",
	"dmon --format=json", "pmon --aiu", "dmon --aiu -s p", "pmon -s p", "dmon -o", "dmon -o TX",
	"-o T", "-s p", "--prometheus --format=json", "--prometheus=", "--prometheus dmon",
	"topo -m -d MEMORY", "-m reset",
};

START_TEST(bad_argument)
{
	two_cards();
	ck_assert_msg(smi("%s", bad_arguments[_i]) == 2, "%s", bad_arguments[_i]);
	ck_assert_str_eq(output, "");
}
END_TEST

START_TEST(unknown_card)
{
	two_cards();
	ck_assert_int_eq(smi("-i 2"), 6);
	ck_assert_int_eq(smi("-i 0,7 -L"), 6);
	ck_assert_int_eq(smi("-i '' -L"), 6);
	ck_assert_int_eq(smi("-i -1"), 6);
}
END_TEST

START_TEST(chosen_cards)
{
	two_cards();
	ck_assert_int_eq(smi("-L"), 0);
	ck_assert_int_eq(num_lines(), 2);
	ck_assert_int_eq(smi("-L -i 1"), 0);
	ck_assert_int_eq(num_lines(), 1);
	ck_assert_ptr_nonnull(strstr(output, "Card 1: Virtual Spyre (UUID: 0b5a9c3e-"));
	ck_assert_int_eq(smi("-i 0B5A9C3E-0000-4000-8000-000000000000 -L"), 0);
	ck_assert_ptr_nonnull(strstr(output, "Card 0:"));
	ck_assert_int_eq(smi("--id=spyre_vdev.1,1 -L"), 0);
	ck_assert_int_eq(num_lines(), 1);
	ck_assert_int_eq(smi("-i 0 --query-compute-apps=pid --format=csv,noheader"), 0);
	ck_assert_str_eq(output, "");
	ck_assert_int_eq(smi("-i 1 --query-compute-apps=pid --format=csv,noheader"), 0);
	ck_assert_str_eq(output, "4242\n");
}
END_TEST

START_TEST(screen_has_80_columns)
{
	const char *line;
	size_t length;

	two_cards();
	fake_open_node(5, "with a name as long as the kernel can keep it, and longer", 5, "/dev/null",
		       9, 99999999);
	ck_assert_int_eq(smi(" "), 0);
	ck_assert_ptr_nonnull(strstr(output, "3072MiB / 16384MiB"));
	ck_assert_ptr_nonnull(strstr(output, "31W / 75W"));
	ck_assert_ptr_nonnull(strstr(output, "4242"));
	for (line = output; *line; line += length + 1) {
		length = strcspn(line, "\n");
		if (*line == '|' || *line == '+')
			ck_assert_msg(length == 80, "%zu columns: %.*s", length, (int)length, line);
		ck_assert_uint_le(length, 80);
	}
}
END_TEST

START_TEST(report)
{
	two_cards();
	ck_assert_int_eq(smi("-q"), 0);
	ck_assert_ptr_nonnull(strstr(output, "Used                        : 3072 MiB"));
	ck_assert_ptr_nonnull(strstr(output, "Name                    : a,\"b"));
	ck_assert_int_eq(smi("-q -d MEMORY,CLOCK -i 0"), 0);
	ck_assert_ptr_nonnull(strstr(output, "1500 MHz"));
	ck_assert_ptr_null(strstr(output, "UUID"));
	ck_assert_ptr_null(strstr(output, "Card 1"));
	ck_assert_int_eq(smi("-q --format=json"), 0);
	ck_assert_ptr_nonnull(strstr(output, "\"memory_used_bytes\":3221225472"));
}
END_TEST

/* The document is read by Python's parser, and by the names that telegraf looks for. */
START_TEST(report_as_xml)
{
	static const char check[] =
		"import sys, xml.etree.ElementTree as tree; "
		"log = tree.parse(sys.argv[1]).getroot(); "
		"cards = log.findall('gpu'); "
		"text = lambda path: cards[0].find(path).text; "
		"print(log.tag, len(cards), text('product_name'), text('fb_memory_usage/used'), "
		"text('clocks/sm_clock'), text('spyre/memory_used_bytes'), sep='|'); "
		"print(*[p.text for p in log.iter('process_name')], sep='|')";
	char folder[] = "/tmp/spyre-xml-XXXXXX", file[64];

	two_cards();
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/report.xml", folder);
	ck_assert_int_eq(smi("-q -x -f %s", file), 0);
	ck_assert_str_eq(output, "");
	ck_assert_int_eq(smi("-L >/dev/null && python3 -c \"%s\" %s", check, file), 0);
	ck_assert_ptr_nonnull(strstr(output, "nvidia_smi_log|2|"));
	ck_assert_ptr_nonnull(strstr(output, "|3072 MiB|1500 MHz|3072 MiB\n"));
	ck_assert_ptr_nonnull(strstr(output, "a,\"b"));
	ck_assert_int_eq(smi("-q -x -i 1"), 0);
	ck_assert_ptr_null(strstr(output, "<minor_number>0"));
	ck_assert_int_eq(smi("-q -f /dev/full"), 255);
	ck_assert_int_eq(smi("-q -f %s/no/such", file), 255);
	unlink(file);
	rmdir(folder);
}
END_TEST

START_TEST(each_field_alone_as_csv)
{
	static char names[64][64], json[64][64], cells[4][128];
	int count, i;

	two_cards();
	count = list_fields("device", names, json, 64);
	ck_assert_int_gt(count, 25);
	for (i = 0; i < count; i++) {
		ck_assert_msg(smi("--query-device=%s --format=csv", names[i]) == 0, "%s", names[i]);
		ck_assert_int_eq(num_lines(), 3);
		ck_assert_int_eq(split(output, cells, 4), 1);
		ck_assert_msg(!strncmp(cells[0], names[i], strlen(names[i])), "%s", cells[0]);
	}
	count = list_fields("compute-apps", names, json, 64);
	ck_assert_int_gt(count, 5);
	for (i = 0; i < count; i++) {
		ck_assert_int_eq(smi("--query-compute-apps=%s --format=csv", names[i]), 0);
		ck_assert_int_eq(num_lines(), 2);
	}
}
END_TEST

/* Joins the names of all fields of a table. */
static int all_fields(const char *what, char *joined, char json[][64])
{
	static char names[64][64];
	int count = list_fields(what, names, json, 64), i;

	joined[0] = '\0';
	for (i = 0; i < count; i++)
		sprintf(joined + strlen(joined), "%s%s", i ? "," : "", names[i]);
	return count;
}

START_TEST(all_fields_as_csv)
{
	static char joined[4096], json[64][64], cells[64][128];
	int count;
	char *row;

	two_cards();
	fake_remove("/sys/devices/platform/spyre_vdev.0/power_mw");
	count = all_fields("device", joined, json);
	ck_assert_int_eq(smi("--query-device=%s --format=csv", joined), 0);
	ck_assert_int_eq(num_lines(), 3);
	ck_assert_int_eq(split(output, cells, 64), count);
	row = strchr(output, '\n') + 1;
	ck_assert_int_eq(split(row, cells, 64), count);
	/* power.draw is missing; all other fields remain. */
	ck_assert_ptr_nonnull(strstr(row, ", [N/A], 75.00 W, 123456 mJ, 1500 MHz, 77, 2, 5.000 ms"));
	ck_assert_ptr_nonnull(strstr(row, "18446744073709551614"));
	count = all_fields("compute-apps", joined, json);
	ck_assert_int_eq(smi("--query-compute-apps=%s --format=csv,noheader,nounits", joined), 0);
	ck_assert_int_eq(num_lines(), 1);
	ck_assert_int_eq(split(output, cells, 64), count);
	ck_assert_str_eq(cells[0], "4242");
	ck_assert_str_eq(cells[1], "a,\"b");
	ck_assert_str_eq(cells[2], "437");
}
END_TEST

START_TEST(csv_switches)
{
	two_cards();
	ck_assert_int_eq(smi("-i 0 --query-gpu=memory.used,utilization.gpu,power.draw --format=csv"), 0);
	ck_assert_str_eq(output, "memory.used [MiB], utilization.device [%], power.draw [W]\n"
				 "3072 MiB, 0 %, 31.25 W\n");
	ck_assert_int_eq(smi("-i 0 --query-gpu=memory.used,index --format=csv,nounits"), 0);
	ck_assert_str_eq(output, "memory.used [MiB], index\n3072, 0\n");
	ck_assert_int_eq(smi("-i 1 --query-gpu=index --format=csv,noheader"), 0);
	ck_assert_str_eq(output, "1\n");
}
END_TEST

/* Keys with text; all others are numbers or null. */
static bool is_text(const char *key)
{
	static const char *const texts[] = {
		"timestamp", "name", "uuid", "bus_id", "node", "backend", "driver_version",
		"arithmetic", "process_name", "user", "device_name", "device_uuid", "device_bus_id",
	};
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (!strcmp(key, texts[i]))
			return true;
	return false;
}

static void check_json(const char *text, size_t length, const char *list, int entries,
		       char json[][64], int count)
{
	yyjson_doc *doc = yyjson_read(text, length, 0);
	yyjson_val *root, *array, *value;
	int entry, i;

	ck_assert_msg(doc != NULL, "%.*s", (int)length, text);
	root = yyjson_doc_get_root(doc);
	ck_assert_int_eq(yyjson_get_int(yyjson_obj_get(root, "schema_version")), 1);
	ck_assert(yyjson_is_real(yyjson_obj_get(root, "timestamp_unix_seconds")));
	array = yyjson_obj_get(root, list);
	ck_assert_uint_eq(yyjson_arr_size(array), entries);
	for (entry = 0; entry < entries; entry++) {
		ck_assert_uint_eq(yyjson_obj_size(yyjson_arr_get(array, entry)), count);
		for (i = 0; i < count; i++) {
			value = yyjson_obj_get(yyjson_arr_get(array, entry), json[i]);
			ck_assert_msg(value != NULL, "no key %s", json[i]);
			ck_assert_msg(yyjson_is_null(value) ||
				      (is_text(json[i]) ? yyjson_is_str(value) :
							  yyjson_is_num(value)),
				      "type of %s", json[i]);
		}
	}
	yyjson_doc_free(doc);
}

START_TEST(all_fields_as_json)
{
	static char joined[4096], json[64][64];
	int count;

	two_cards();
	fake_remove("/sys/devices/platform/spyre_vdev.0/power_mw");
	fake_remove("/sys/devices/platform/spyre_vdev.0/uuid");
	count = all_fields("device", joined, json);
	/* Each key appears once, even if it is requested several times. */
	ck_assert_int_eq(smi("--query-device=%s,name --format=json", joined), 0);
	ck_assert_int_eq(num_lines(), 1);
	check_json(output, strlen(output), "devices", 2, json, count);
	ck_assert_ptr_nonnull(strstr(output, "\"power_draw_watts\":null"));
	ck_assert_ptr_nonnull(strstr(output, "\"power_draw_watts\":31.25"));
	ck_assert_ptr_nonnull(strstr(output, "\"macs_total\":18446744073709551614"));
	count = all_fields("compute-apps", joined, json);
	ck_assert_int_eq(smi("--query-compute-apps=%s --format=json", joined), 0);
	check_json(output, strlen(output), "processes", 1, json, count);
}
END_TEST

/* Totals of copies between cards, in MiB and in bytes. */
START_TEST(peer_counters)
{
	two_cards();
	fake_file("/sys/devices/platform/spyre_vdev.1/rdma_read", "5242881\n");
	fake_remove("/sys/devices/platform/spyre_vdev.1/rdma_written");
	ck_assert_int_eq(smi("--query-device=rdma.read,rdma.written --format=csv"), 0);
	ck_assert_str_eq(output, "rdma.read [MiB], rdma.written [MiB]\n"
				 "3 MiB, 4 MiB\n5 MiB, [N/A]\n");
	ck_assert_int_eq(smi("--query-device=rdma.read,rdma.written --format=json"), 0);
	ck_assert_ptr_nonnull(strstr(output, "[{\"rdma_read_bytes_total\":3145728,"
					     "\"rdma_written_bytes_total\":4194304},"
					     "{\"rdma_read_bytes_total\":5242881,"
					     "\"rdma_written_bytes_total\":null}]"));
	ck_assert_int_eq(smi("-q -d COUNTERS -i 0"), 0);
	ck_assert_ptr_nonnull(strstr(output, "Read from Peers             : 3 MiB\n"
					     "        Written to Peers            : 4 MiB\n"));
}
END_TEST

/* Replaces a counter of card 0 as a whole: a reader sees the old number or the new one. */
static void replace(const char *name, unsigned long long value)
{
	char path[160], draft[192];
	FILE *file;

	snprintf(path, sizeof(path), "%s/sys/devices/platform/spyre_vdev.0/%s", fake_root(), name);
	snprintf(draft, sizeof(draft), "%s.new", path);
	file = fopen(draft, "w");
	if (!file || fprintf(file, "%llu\n", value) < 0 || fclose(file) || rename(draft, path))
		_exit(1);
}

/*
 * Starts a process that lets card 0 read 10^9 bytes every 10 ms, at least, in 1,000 cycles in
 * which 8 of 32 PTs work and 16 SFUs.
 */
static pid_t grow(void)
{
	struct timespec pause = { .tv_nsec = 10000000 };
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid)
		return pid;
	for (unsigned long long i = 1;; i++) {
		replace("bytes_read", i * 1000000000);
		replace("cycles", i * 1000);
		replace("pt_cycles", i * 8 * 1000);
		replace("sfu_cycles", i * 16 * 1000);
		nanosleep(&pause, NULL);
	}
}

START_TEST(device_monitor)
{
	static char cells[32][128];
	char *line;
	pid_t pid;

	two_cards();
	ck_assert_int_eq(smi("dmon -c 2 -d 0.01 -i 1"), 0);
	ck_assert_int_eq(num_lines(), 4);
	ck_assert_ptr_nonnull(strstr(output, "#card    pwr   temp  busy"));
	ck_assert_ptr_nonnull(strstr(output, "\n# Idx      W      C     %"));
	ck_assert_ptr_nonnull(strstr(output, "\n    1   31.2   41.5     0     0     0   1500"));
	ck_assert_int_eq(smi("dmon -c 1 -d 0.01 -s t -o DT"), 0);
	ck_assert_int_eq(num_lines(), 4);
	ck_assert_ptr_nonnull(strstr(output, "#Date     Time     card    rxpci    txpci\n"));
	ck_assert_int_eq(sscanf(strrchr(output, '#'), "#%*s%*s%*s%*s%*s %[0-9] %[0-9:] %s %s %s",
				cells[0], cells[1], cells[2], cells[3], cells[4]), 5);
	ck_assert_uint_eq(strlen(cells[0]), 8);
	ck_assert_uint_eq(strlen(cells[1]), 8);
	ck_assert_str_eq(cells[2], "0");
	ck_assert_str_eq(cells[3], "0.000");
	/* Rates are those between two lines. */
	pid = grow();
	/* The counters are read one after the other, so that shares are near 25 and 50 only. */
	ck_assert_int_eq(smi("dmon -c 3 -d 0.3 -s u -i 0"), 0);
	ck_assert_int_eq(sscanf(strrchr(output, '#'), "%*[^\n] %*[^\n] %*[^\n] %*s %*s %s %s",
				cells[0], cells[1]), 2);
	ck_assert_msg(atof(cells[0]) > 0 && atof(cells[1]) > atof(cells[0]), "%s %% and %s %%",
		      cells[0], cells[1]);
	ck_assert_int_eq(smi("dmon -c 3 -d 0.3 -s m"), 0);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	line = strrchr(output, '\n') - 1;
	while (line[-1] != '\n')
		line--;
	/* The last line is that of card 1, which does not change. */
	ck_assert_ptr_nonnull(strstr(line, "    1    3072    4096    0.000"));
	line = strstr(output, "\n    0 ");
	ck_assert_ptr_nonnull(line);
	ck_assert_int_eq(sscanf(line, "%s %s %s %s", cells[0], cells[1], cells[2], cells[3]), 4);
	ck_assert_str_eq(cells[1], "3072");
	ck_assert_str_eq(cells[2], "4096");
	ck_assert_msg(atof(cells[3]) > 0 && atof(cells[3]) < 200, "%s GB/s", cells[3]);
	ck_assert_int_eq(smi("dmon -c 1 -i 7"), 6);
}
END_TEST

START_TEST(aiu_monitor)
{
	double cpu, memory, power;
	int index;

	two_cards();
	fake_remove("/sys/devices/platform/spyre_vdev.0/pcie_rx_bytes");
	ck_assert_int_eq(smi("dmon --aiu -c 1 -d 0.05 -i 0"), 0);
	ck_assert_int_eq(num_lines(), 2);
	ck_assert_int_eq(strncmp(output, "#ID Date     Time     hostcpu hostmem    pwr  gtemp busy",
				 55), 0);
	ck_assert_int_eq(sscanf(strchr(output, '\n'), "%d %*d %*[0-9:] %lf %lf %lf", &index, &cpu,
				&memory, &power), 4);
	ck_assert_int_eq(index, 0);
	ck_assert(memory > 0 && memory <= 100 && cpu >= 0);
	ck_assert(power > 31 && power < 32);
	ck_assert_ptr_nonnull(strstr(strchr(output, '\n'), "    0   0.000   0.000       -   0.000 "
			      "  0.000   0.000    3072       -    4096 "));
}
END_TEST

START_TEST(process_monitor)
{
	two_cards();
	fake_file("/proc/4242/fdinfo/5", "drm-driver:\tspyre_vdev\ndrm-client-id:\t7\n"
		  "drm-engine-spyre:\t5 ns\ndrm-total-lpddr5:\t437 MiB\nspyre-bytes-read:\t5\n");
	ck_assert_int_eq(smi("pmon -c 1 -d 0.01"), 0);
	ck_assert_int_eq(num_lines(), 3);
	ck_assert_ptr_nonnull(strstr(output, "#card      pid  vf  busy    pt   sfu"));
	ck_assert_ptr_nonnull(strstr(output, "\n    1     4242   -     0     -     -     437       -"
					     "    0.000        -"));
	ck_assert_ptr_nonnull(strstr(output, " a,\"b\n"));
	ck_assert_int_eq(smi("pmon -c 1 -d 0.01 -i 0"), 0);
	ck_assert_int_eq(num_lines(), 2);
	/* An unknown busy time is none, not 100 %. */
	fake_file("/proc/4242/fdinfo/5", "drm-driver:\tspyre_vdev\ndrm-client-id:\t7\n");
	fake_remove("/sys/devices/platform/spyre_vdev.1/busy_ns");
	ck_assert_int_eq(smi("dmon -c 1 -d 0.01 -i 1 -s u"), 0);
	ck_assert_ptr_nonnull(strstr(output, "\n    1     -     0     0\n"));
}
END_TEST

START_TEST(monitor_without_cards)
{
	ck_assert_int_eq(smi("dmon -c 2 -d 0.01"), 9);
	ck_assert_int_eq(num_lines(), 2);
	/* It has waited for a card to the last line, and says so. */
	ck_assert_int_eq(smi("dmon -c 2 -d 0.01 2>&1 || exit $?; :"), 9);
	ck_assert_ptr_nonnull(strstr(output, "cannot find a Spyre card"));
}
END_TEST

/* A file of metrics is replaced as a whole, and nothing else is left in its folder. */
START_TEST(metrics_in_a_file)
{
	char path[160], folder[128];
	static char text[1 << 16];
	FILE *file;

	two_cards();
	snprintf(folder, sizeof(folder), "%s/metrics", fake_root());
	fake_file("/metrics/spyre.prom", "old\n");
	snprintf(path, sizeof(path), "%s/spyre.prom", folder);
	ck_assert_int_eq(smi("--prometheus"), 0);
	ck_assert_ptr_nonnull(strstr(output, "\nspyre_launches_total{card=\"0\","));
	ck_assert_int_eq(smi("--prometheus=%s -i 1", path), 0);
	ck_assert_str_eq(output, "");
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	ck_assert_ptr_nonnull(strstr(text, "spyre_power_watts{card=\"1\","));
	ck_assert_ptr_null(strstr(text, "{card=\"0\""));
	ck_assert_int_ne(strncmp(text, "old", 3), 0);
	ck_assert_int_eq(smi("--prometheus=%s/none/x.prom", folder), 255);
	ck_assert_int_eq(smi("--prometheus=%s/spyre.prom/x", folder), 255);
	/* A folder cannot be replaced; the draft must not stay. */
	fake_file("/metrics/folder/in", "x");
	ck_assert_int_eq(smi("--prometheus=%s/folder", folder), 255);
	ck_assert_int_eq(smi("-L && ls %s | wc -l", folder), 0);
	ck_assert_ptr_nonnull(strstr(output, "\n2\n"));
	/* Root could replace a device like /dev/null. */
	snprintf(path, sizeof(path), "%s/pipe", folder);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(smi("--prometheus=%s", path), 255);
	ck_assert_int_eq(smi("-L && test -p %s", path), 0);
}
END_TEST

/* Prometheus' own checker finds nothing to complain about. */
START_TEST(metrics_by_promtool)
{
	if (system("command -v promtool >/dev/null")) {
		puts("# metrics_by_promtool: skipped, no promtool: install package prometheus "
		     "(scripts/deps test)");
		return;
	}
	two_cards();
	ck_assert_msg(smi("--prometheus | promtool check metrics 2>&1") == 0, "%s", output);
	ck_assert_str_eq(output, "");
}
END_TEST

static const char *const clients[] = { "parser", "node_exporter" };

/* True, with a note, if a program that metrics_clients.py needs is not installed. */
static bool lacks(const char *client, const char *command, const char *package)
{
	if (!system(command))
		return false;
	printf("# metrics_by_%s: skipped, install package %s (scripts/deps test)\n", client, package);
	return true;
}

/* Other readers of the format find the numbers of the cards, and names that need an escape. */
START_TEST(metrics_by_clients)
{
	const char *client = clients[_i], *source = getenv("SPYRE_SRCDIR");
	char folder[128];

	if (lacks(client, "/usr/bin/python3 -c 'import prometheus_client' 2>/dev/null",
		  "python3-prometheus-client") ||
	    (_i == 1 && lacks(client, "command -v prometheus-node-exporter >/dev/null",
			      "prometheus-node-exporter")))
		return;
	two_cards();
	fake_open_node(4243, "a\\n\nb", 6, "/dev/null", 8, 1 << 10);
	fake_file("/metrics/spyre.prom", "\n");
	snprintf(folder, sizeof(folder), "%s/metrics", fake_root());
	ck_assert_int_eq(smi("--prometheus=%s/spyre.prom", folder), 0);
	ck_assert_int_eq(smi("--format=json --query-device=power.draw,temperature.device,"
			     "memory.used,energy.total,launches,macs >%s/cards.json", folder), 0);
	ck_assert_int_eq(smi("--format=json --query-compute-apps=pid,process_name >%s/apps.json",
			     folder), 0);
	ck_assert_msg(smi("-L >/dev/null; PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "
			  "'%s/tests/unit/metrics_clients.py' %s %s "
			  "2>&1", source ? source : ".", client, folder) == 0, "%s", output);
}
END_TEST

/* Cards 0 and 1 are below one switch, card 4 is below another one. */
static void three_cards(void)
{
	two_cards();
	fake_card(2, 4, "/dev/full");
	fake_file("/sys/devices/platform/spyre_vdev.4/numa_node", "1\n");
	fake_file("/sys/devices/system/node/node1/cpulist", "4-7,12-15\n");
}

START_TEST(matrix)
{
	three_cards();
	ck_assert_int_eq(smi("topo -m"), 0);
	ck_assert_ptr_nonnull(strstr(output,
		"         CARD0    CARD1    CARD2    CPU Affinity    NUMA Affinity\n"
		"CARD0     X       PIX      PHB      N/A             N/A\n"
		"CARD1    PIX       X       PHB      N/A             N/A\n"
		"CARD2    PHB      PHB       X       4-7,12-15       1\n\nLegend:\n"));
	ck_assert_ptr_nonnull(strstr(output, "\n  PIX  = "));
	ck_assert_int_eq(smi("-m -i 2,0"), 0);
	ck_assert_ptr_nonnull(strstr(output, "         CARD0    CARD2    CPU Affinity "));
	ck_assert_ptr_null(strstr(output, "CARD1"));
	ck_assert_int_eq(smi("topo -m -i 7"), 6);
	ck_assert_int_eq(smi("topo -m > /dev/full"), 255);
}
END_TEST

START_TEST(access_between_cards)
{
	three_cards();
	ck_assert_int_eq(smi("topo -p2p r"), 0);
	ck_assert_ptr_nonnull(strstr(output, "         CARD0    CARD1    CARD2    \n"
					     "CARD0     X       OK       OK       \n"));
	ck_assert_int_eq(smi("topo -p2p n -i 0,2"), 0);
	ck_assert_ptr_nonnull(strstr(output, "         CARD0    CARD2    \n"
					     "CARD0     X       NS       \n"
					     "CARD2    NS        X       \n"));
	ck_assert_int_eq(smi("topo -p2p w > /dev/full"), 255);
}
END_TEST

START_TEST(matrix_for_programs)
{
	yyjson_doc *doc;
	yyjson_val *card;

	three_cards();
	ck_assert_int_eq(smi("topo -m -i 0,2 --format=csv"), 0);
	ck_assert_str_eq(output, "index, peer, link, cpu_affinity, numa_affinity\n"
				 "0, 0, self, [N/A], [N/A]\n0, 2, host, [N/A], [N/A]\n"
				 "2, 0, host, \"4-7,12-15\", 1\n2, 2, self, \"4-7,12-15\", 1\n");
	ck_assert_int_eq(smi("topo --format=csv,noheader -i 1"), 0);
	ck_assert_str_eq(output, "1, 1, self, [N/A], [N/A]\n");
	ck_assert_int_eq(smi("topo -m --format=json"), 0);
	ck_assert_int_eq(num_lines(), 1);
	doc = yyjson_read(output, strlen(output), 0);
	ck_assert_ptr_nonnull(doc);
	card = yyjson_doc_ptr_get(doc, "/devices/2");
	ck_assert_str_eq(yyjson_get_str(yyjson_obj_get(card, "cpu_affinity")), "4-7,12-15");
	ck_assert_str_eq(yyjson_get_str(yyjson_obj_get(card, "bus_id")), "spyre_vdev.4");
	ck_assert(yyjson_is_null(yyjson_doc_ptr_get(doc, "/devices/0/numa_affinity")));
	ck_assert_uint_eq(yyjson_arr_size(yyjson_doc_ptr_get(doc, "/devices/0/peers")), 2);
	ck_assert_int_eq(yyjson_get_int(yyjson_doc_ptr_get(doc, "/devices/0/peers/1/index")), 2);
	ck_assert_str_eq(yyjson_get_str(yyjson_doc_ptr_get(doc, "/devices/0/peers/1/link")),
			 "host");
	ck_assert_str_eq(yyjson_get_str(yyjson_doc_ptr_get(doc, "/devices/1/peers/0/link")),
			 "switch");
	yyjson_doc_free(doc);
}
END_TEST

START_TEST(loop_gives_one_object_per_line)
{
	char json[2][64] = { "index", "utilization_percent" };
	char *line, *end;
	int lines = 0;

	two_cards();
	ck_assert_int_eq(smi("--query-device=index,utilization.device --format=json -l 0.02 -c 3"), 0);
	for (line = output; *line; line = end + 1, lines++) {
		end = strchr(line, '\n');
		ck_assert_ptr_nonnull(end);
		check_json(line, end - line, "devices", 2, json, 2);
	}
	ck_assert_int_eq(lines, 3);
	ck_assert_int_eq(smi("--query-device=index --format=csv --loop-ms=20 --count=3"), 0);
	ck_assert_int_eq(num_lines(), 7);
}
END_TEST

START_TEST(version_and_help)
{
	ck_assert_int_eq(smi("--version"), 0);
	ck_assert_ptr_nonnull(strstr(output, "spyre-smi " VERSION " (libspyre "));
	ck_assert_int_eq(smi("--help"), 0);
	ck_assert_ptr_nonnull(strstr(output, "--query-compute-apps"));
	ck_assert_int_eq(smi("--help > /dev/full"), 255);
}
END_TEST

START_TEST(full_disk_is_an_error)
{
	two_cards();
	ck_assert_int_eq(smi("-L > /dev/full"), 255);
}
END_TEST

START_TEST(events)
{
	yyjson_doc *doc;
	yyjson_val *root;

	two_cards();
	ck_assert_int_eq(smi("events"), 0);
	ck_assert_str_eq(output, "");
	fake_file("/sys/devices/platform/spyre_vdev.1/events",
		  "0 2\n0 1500000000123456789 reset 3 0\n1 1500000002000000000 vfs 2 0\n");
	fake_file("/sys/devices/platform/spyre_vdev.0/context_events",
		  "0 1\n0 1500000001000000000 fault 2 44\n");
	ck_assert_int_eq(smi("events"), 0);
	ck_assert_str_eq(output,
			 "2017-07-14T02:40:00.123456Z spyre_vdev.1 card_reset generation 3\n"
			 "2017-07-14T02:40:01.000000Z spyre_vdev.0 client 44 fault access\n"
			 "2017-07-14T02:40:02.000000Z spyre_vdev.1 card_vfs 2 VFs\n");
	ck_assert_int_eq(smi("events -i 0 --format=json"), 0);
	ck_assert_int_eq(num_lines(), 1);
	doc = yyjson_read(output, strlen(output), 0);
	root = yyjson_doc_get_root(doc);
	ck_assert_str_eq(yyjson_get_str(yyjson_obj_get(root, "event")), "fault");
	ck_assert_str_eq(yyjson_get_str(yyjson_obj_get(root, "fault")), "access");
	ck_assert_uint_eq(yyjson_get_uint(yyjson_obj_get(root, "client")), 44);
	ck_assert_uint_eq(yyjson_get_uint(yyjson_obj_get(root, "time_ns")), 1500000001000000000);
	ck_assert(yyjson_is_null(yyjson_obj_get(root, "value")));
	ck_assert(yyjson_is_null(yyjson_obj_get(root, "record")));
	yyjson_doc_free(doc);
	ck_assert_int_eq(smi("events -i spyre_vdev.1 --format=text"), 0);
	ck_assert_int_eq(num_lines(), 2);
	/* A card that is gone, or still to come, is no error unless it is a number. */
	ck_assert_int_eq(smi("events -i spyre_vdev.7"), 0);
	ck_assert_str_eq(output, "");
	ck_assert_int_eq(smi("events -i 7"), 6);
	ck_assert_int_eq(smi("events --format=csv"), 2);
	ck_assert_int_eq(smi("events --format=xml"), 2);
	ck_assert_int_eq(smi("events -l 1"), 2);
	ck_assert_int_eq(smi("-q -f"), 2);
	ck_assert_int_eq(smi("-q --format=text"), 2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("smi");
	TCase *tcase = tcase_create("smi");

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, setup, fake_end);
	tcase_add_test(tcase, no_cards);
	tcase_add_test(tcase, no_cards_is_still_json);
	tcase_add_loop_test(tcase, bad_argument, 0,
			    sizeof(bad_arguments) / sizeof(bad_arguments[0]));
	tcase_add_test(tcase, unknown_card);
	tcase_add_test(tcase, chosen_cards);
	tcase_add_test(tcase, screen_has_80_columns);
	tcase_add_test(tcase, report);
	tcase_add_test(tcase, report_as_xml);
	tcase_add_test(tcase, each_field_alone_as_csv);
	tcase_add_test(tcase, all_fields_as_csv);
	tcase_add_test(tcase, csv_switches);
	tcase_add_test(tcase, all_fields_as_json);
	tcase_add_test(tcase, peer_counters);
	tcase_add_test(tcase, device_monitor);
	tcase_add_test(tcase, aiu_monitor);
	tcase_add_test(tcase, process_monitor);
	tcase_add_test(tcase, monitor_without_cards);
	tcase_add_test(tcase, metrics_in_a_file);
	tcase_add_test(tcase, metrics_by_promtool);
	tcase_add_loop_test(tcase, metrics_by_clients, 0, 2);
	tcase_add_test(tcase, matrix);
	tcase_add_test(tcase, access_between_cards);
	tcase_add_test(tcase, matrix_for_programs);
	tcase_add_test(tcase, loop_gives_one_object_per_line);
	tcase_add_test(tcase, version_and_help);
	tcase_add_test(tcase, full_disk_is_an_error);
	tcase_add_test(tcase, events);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
