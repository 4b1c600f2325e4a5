package io.gpunvme.cli.output;

import java.io.PrintStream;
import java.util.function.IntSupplier;

/**
 * The streams for output.
 *
 * @param out results: text, one JSON object, or data
 * @param err everything else
 * @param columns finds the width of the terminal behind {@code err}, 0 if {@code err} is not a
 *     terminal; called only by commands that show progress
 * @param screen likewise the width of the terminal behind {@code out}, for commands that redraw it
 */
public record OutputStreams(
    PrintStream out, PrintStream err, IntSupplier columns, IntSupplier screen) {}
