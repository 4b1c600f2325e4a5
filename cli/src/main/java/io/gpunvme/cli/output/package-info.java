/**
 * The look of results: tables, JSON, sizes, progress bars.
 *
 * <p>In: turning values into characters on a stream, and finding out whether a stream is a
 * terminal. Out: commands and their options ({@code cli}), and anything that talks to a device.
 */
@NullMarked
package io.gpunvme.cli.output;

import org.jspecify.annotations.NullMarked;
