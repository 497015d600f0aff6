// SPDX-License-Identifier: MIT
/*
 * Prints an analysis as one page without scripts and without other resources. Every text of the
 * trace passes through put_markup(), and the page's policy lets a browser load or run nothing.
 */
#include <inttypes.h>
#include <math.h>

#include "analysis.h"
#include "tools/markup.h"

#define MAX_ROWS 200		/* kernels in tables and plots */
#define MAX_BARS 3000		/* launches and phases in the timeline */

static const char *const colours[] = {
	"#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#9c755f",
};
#define NUM_COLOURS (sizeof(colours) / sizeof(colours[0]))

static size_t rows(const struct analysis *a)
{
	return a->num_kernels < MAX_ROWS ? a->num_kernels : MAX_ROWS;
}

static void put_head(const char *title)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	      "style-src 'unsafe-inline'\">\n<title>", stdout);
	put_markup(title);
	fputs("</title>\n<style>body{font:14px sans-serif;margin:2em;max-width:1100px}"
	      "table{border-collapse:collapse}td,th{padding:3px 8px;border-bottom:1px solid #ddd;"
	      "text-align:right;font-variant-numeric:tabular-nums}td:first-child,th:first-child,"
	      "td:nth-child(2),th:nth-child(2){text-align:left}td:nth-child(2){max-width:22em;"
	      "overflow-wrap:anywhere}svg{background:#fafafa;border:1px solid #ddd}"
	      "text{font:11px sans-serif;fill:#333}i{display:inline-block;width:10px;height:10px}"
	      "</style></head><body>\n<h1>", stdout);
	put_markup(title);
	puts("</h1>");
}

static void put_advice(const struct analysis *a)
{
	struct text text;

	puts("<h2>Advice</h2>");
	if (!a->num_advice)
		puts("<p>Nothing would save more than 1 % of the modelled time, as far as the trace "
		     "shows.</p>");
	puts("<ol>");
	for (size_t i = 0; i < a->num_advice; i++) {
		analysis_sentence(a, &a->advice[i], &text);
		fputs("<li>", stdout);
		put_markup(text.s);
		puts("</li>");
	}
	puts("</ol>");
}

static void put_row(const struct analysis *a, size_t index)
{
	const struct kernel *k = &a->kernel[index];
	const enum bound bound = analysis_bound(k);

	printf("<tr><td><i style=\"background:%s\"></i> %zu</td><td>", colours[index % NUM_COLOURS],
	       index + 1);
	put_markup(k->name);
	printf("</td><td>%" PRIu64 "</td><td>%.3f</td><td>%.1f</td><td>%" PRIu64 "</td><td>%" PRIu64
	       "</td><td>%s</td>", k->launches, analysis_us(a, (double)k->cycles),
	       a->cycles ? 100.0 * (double)k->cycles / (double)a->cycles : 0, k->macs,
	       analysis_bytes(k), bound == BOUNDS ? "-" : bound_names[bound]);
	if (bound == BOUNDS)
		puts("<td>-</td><td>-</td></tr>");
	else
		printf("<td>%.1f</td><td>%" PRIu64 "</td></tr>\n", k->all_core_cycles > 0 ?
		       100 * k->used_core_cycles / k->all_core_cycles : 100, k->lx_bytes);
}

static void put_table(const struct analysis *a)
{
	puts("<h2>Kernels</h2><table><tr><th></th><th>kernel</th><th>launches</th>"
	     "<th>modelled us</th><th>%</th><th>MACs</th><th>LPDDR5 bytes</th><th>bound by</th>"
	     "<th>cores %</th><th>LX bytes</th></tr>");
	for (size_t i = 0; i < rows(a); i++)
		put_row(a, i);
	puts("</table>");
	if (rows(a) < a->num_kernels)
		printf("<p>%zu kernels with less time are not shown.</p>\n",
		       a->num_kernels - rows(a));
}

/* Logarithmic axes of the roofline: MACs per byte, and MACs per cycle. */
#define X_MIN (-2.0)
#define X_MAX 4.0
#define Y_MIN 0.0
#define Y_MAX 5.0
#define WIDTH 900.0
#define HEIGHT 420.0

static double x_of(double intensity)
{
	return 60 + (fmin(fmax(log10(intensity), X_MIN), X_MAX) - X_MIN) / (X_MAX - X_MIN) *
	       (WIDTH - 80);
}

static double y_of(double rate)
{
	return HEIGHT - 40 - (fmin(fmax(log10(rate), Y_MIN), Y_MAX) - Y_MIN) / (Y_MAX - Y_MIN) *
	       (HEIGHT - 60);
}

static void put_axes(void)
{
	for (int x = (int)X_MIN; x <= (int)X_MAX; x++)
		printf("<line x1=\"%.1f\" x2=\"%.1f\" y1=\"20\" y2=\"%.1f\" stroke=\"#e5e5e5\"/>"
		       "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%g</text>\n",
		       x_of(pow(10, x)), x_of(pow(10, x)), HEIGHT - 40, x_of(pow(10, x)),
		       HEIGHT - 24, pow(10, x));
	for (int y = (int)Y_MIN; y <= (int)Y_MAX; y++)
		printf("<line x1=\"60\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#e5e5e5\"/>"
		       "<text x=\"54\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", WIDTH - 20,
		       y_of(pow(10, y)), y_of(pow(10, y)), y_of(pow(10, y)) + 4, pow(10, y));
	printf("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">multiply-adds per LPDDR5 byte"
	       "</text><text x=\"64\" y=\"14\">multiply-adds per cycle</text>\n", WIDTH / 2,
	       HEIGHT - 8);
}

static void put_roofline(const struct analysis *a)
{
	uint64_t cores = 0;
	double peak, knee;
	size_t without = 0;

	for (size_t i = 0; i < a->num_kernels; i++)
		if (a->kernel[i].card_cores > cores)
			cores = a->kernel[i].card_cores;
	cores = cores && cores < 1024 ? cores : 32;
	peak = PEAK_MACS_OF_CORE * (double)cores;
	knee = peak / PEAK_LPDDR_BYTES;
	printf("<h2>Roofline</h2><svg role=\"img\" aria-label=\"roofline\" width=\"%g\" "
	       "height=\"%g\">\n", WIDTH, HEIGHT);
	put_axes();
	printf("<polyline fill=\"none\" stroke=\"#333\" stroke-width=\"1.5\" points=\"%.1f,%.1f "
	       "%.1f,%.1f %.1f,%.1f\"/>\n", x_of(1 / (double)PEAK_LPDDR_BYTES), y_of(1), x_of(knee),
	       y_of(peak), x_of(1e4), y_of(peak));
	for (size_t i = 0; i < rows(a); i++) {
		const struct kernel *k = &a->kernel[i];
		const double bytes = (double)analysis_bytes(k);

		if (!k->macs || bytes == 0 || !k->cycles) {
			without++;
			continue;
		}
		printf("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"%s\"><title>",
		       x_of((double)k->macs / bytes), y_of((double)k->macs / (double)k->cycles),
		       colours[i % NUM_COLOURS]);
		put_markup(k->name);
		printf("</title></circle><text x=\"%.1f\" y=\"%.1f\">%zu</text>\n",
		       x_of((double)k->macs / bytes) + 8,
		       y_of((double)k->macs / (double)k->cycles) + 4, i + 1);
	}
	printf("</svg><p>The line is the peak of %" PRIu64 " cores with 16-bit inputs and of LPDDR5 "
	       "in one direction. Kernels without multiply-adds or LPDDR5 traffic are not in it: "
	       "%zu.</p>\n",
	       cores, without);
}

static void put_bounds(const struct analysis *a)
{
	double y = 10;

	printf("<h2>What the time of each kernel follows from</h2><p>");
	for (int i = 0; i < BOUNDS; i++)
		printf("<i style=\"background:%s\"></i> %s ", colours[i], bound_names[i]);
	printf("</p><svg role=\"img\" aria-label=\"bounds\" width=\"%g\" height=\"%zu\">\n", WIDTH,
	       rows(a) * 22 + 16);
	for (size_t row = 0; row < rows(a); row++, y += 22) {
		const struct kernel *k = &a->kernel[row];
		double x = 40;

		printf("<text x=\"30\" y=\"%.1f\" text-anchor=\"end\">%zu</text>\n", y + 12,
		       row + 1);
		for (int i = 0; i < BOUNDS && k->detailed_cycles; i++) {
			const double share = (double)k->bound[i] / (double)k->detailed_cycles;
			const double width = (WIDTH - 60) * fmin(share, 1);

			if (width < 0.05 || x + width > WIDTH)
				continue;
			printf("<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"16\" "
			       "fill=\"%s\"><title>%s %.1f %%</title></rect>\n", x, y, width,
			       colours[i], bound_names[i], 100 * share);
			x += width;
		}
	}
	puts("</svg>");
}

static size_t index_of(const struct analysis *a, const char *name)
{
	for (size_t i = 0; i < rows(a); i++)
		if (a->kernel[i].name == name || !strcmp(a->kernel[i].name, name))
			return i;
	return rows(a);
}

static void put_timeline(const struct analysis *a)
{
	const struct trace *t = a->trace;
	size_t bars = 0, left = 0, kernel = 0;
	double end = 1;

	for (size_t i = 0; i < t->count; i++)
		if (t->event[i].kind == TRACE_LAUNCH || t->event[i].kind == TRACE_PHASE)
			end = fmax(end, (double)t->event[i].start_cycle +
				   (double)t->event[i].cycles);
	printf("<h2>Modelled time</h2><svg role=\"img\" aria-label=\"timeline\" width=\"%g\" "
	       "height=\"100\">\n<text x=\"4\" y=\"24\">launches</text>"
	       "<text x=\"4\" y=\"60\">phases</text>\n", WIDTH);
	for (size_t i = 0; i < t->count; i++) {
		const struct trace_event *e = &t->event[i];
		const bool launch = e->kind == TRACE_LAUNCH;

		if (!launch && e->kind != TRACE_PHASE)
			continue;
		if (bars == MAX_BARS) {
			left++;
			continue;
		}
		if (launch)
			kernel = index_of(a, e->name);
		printf("<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"24\" fill=\"%s\" "
		       "fill-opacity=\"%s\" stroke=\"#fff\" stroke-width=\"0.3\"><title>",
		       60 + (WIDTH - 70) * (double)e->start_cycle / end, launch ? 8 : 44,
		       fmax((WIDTH - 70) * (double)e->cycles / end, 0.3),
		       colours[kernel % NUM_COLOURS], bars++ % 2 ? "1" : "0.8");
		put_markup(e->name);
		printf(", %" PRIu64 " cycles</title></rect>\n", e->cycles);
	}
	printf("<text x=\"60\" y=\"88\">0</text><text x=\"%g\" y=\"88\" text-anchor=\"end\">%.3f us"
	       "</text></svg>\n", WIDTH - 10, analysis_us(a, end));
	if (left)
		printf("<p>%zu further launches and phases are not shown.</p>\n", left);
}

int analysis_html(const struct analysis *a, const char *title)
{
	bool detailed = false;

	for (size_t i = 0; i < a->num_kernels; i++)
		detailed |= a->kernel[i].detailed != 0;
	put_head(title);
	printf("<p>%zu kernel%s, %.3f us of modelled time; %" PRIu64 " copies and fills of %" PRIu64
	       " bytes, %.3f us.</p>\n", a->num_kernels, a->num_kernels == 1 ? "" : "s", analysis_us(a, (double)a->cycles),
	       a->copies, a->copy_bytes, analysis_us(a, (double)a->copy_cycles));
	put_advice(a);
	put_table(a);
	put_roofline(a);
	if (detailed) {
		put_bounds(a);
		put_timeline(a);
	} else {
		puts("<p>The trace has no time of cores (SPYRE_TRACE_LEVEL=cores), so nothing is "
		     "known of bounds and idle cores.</p>");
	}
	puts("</body></html>");
	return EXIT_OK;
}
