/**
 * What controllers do at this moment, in all processes of a user.
 *
 * <p>In: which controllers somebody means ({@code TopTarget}), rates between two looks ({@code
 * TopLooks}), and a server that gives everything to Prometheus ({@code MetricsServer}). Out:
 * counting and asking processes ({@code gpu.watch}), and the display ({@code cli}).
 */
@NullMarked
package io.gpunvme.tools.top;

import org.jspecify.annotations.NullMarked;
