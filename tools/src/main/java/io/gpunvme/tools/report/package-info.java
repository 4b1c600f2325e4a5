/**
 * Results of benchmarks as one page for people: {@code gpunvme bench report}, and one line for
 * scripts.
 *
 * <p>In: reading result files, which are outside input; what is plotted from which result ids; the
 * page. The plots themselves are Chart.js, unpacked into this package by the build. Out: measuring
 * ({@code tools.bench}); it uses no package of ours. Others may use its markup of pages and
 * pictures.
 */
@NullMarked
package io.gpunvme.tools.report;

import org.jspecify.annotations.NullMarked;
