package io.gpunvme.cli.output;

import java.io.PrintStream;
import java.util.function.IntSupplier;

/**
 * Where output goes.
 *
 * @param out results: text, one JSON object, or data
 * @param err everything else
 * @param columns finds the width of the terminal that {@code err} is, 0 if it is none; asked only
 *     by commands that have something to show
 */
public record OutputStreams(PrintStream out, PrintStream err, IntSupplier columns) {}
