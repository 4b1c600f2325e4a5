/**
 * Benchmarks: what the driver and the embedded controller cost on a CPU.
 *
 * <p>In: JMH benchmarks, each against a baseline measured in the same run, and the runner that
 * writes the result file. Every benchmark checks the data it moved and fails instead of printing a
 * number for wrong data. Never part of the product.
 */
@NullMarked
package io.gpunvme.bench;

import org.jspecify.annotations.NullMarked;
