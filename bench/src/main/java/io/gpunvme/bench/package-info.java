/**
 * Benchmarks: what the driver and the embedded controller cost on a CPU, and what C and Python add
 * to Java.
 *
 * <p>In: JMH benchmarks and the three sides of the bindings, each against a baseline measured in
 * the same run, and the runners, also of the GPU's benchmarks ({@code core.bench}), which write the
 * result files. Every benchmark checks the data it moved and fails instead of printing a number for
 * wrong data. Never part of the product.
 */
@NullMarked
package io.gpunvme.bench;

import org.jspecify.annotations.NullMarked;
