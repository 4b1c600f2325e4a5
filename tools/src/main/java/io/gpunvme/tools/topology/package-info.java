/**
 * How GPUs and SSDs hang together, and what follows: the tree of NUMA nodes, host bridges, switches
 * and functions; the ways of bytes between each GPU and SSD with the rate that the links allow;
 * what to put where. As text and as a picture (SVG).
 *
 * <p>In: drawing conclusions from {@code machine}'s picture and {@code doctor}'s findings. Out:
 * reading sysfs ({@code machine}), measuring ({@code bench}).
 */
@NullMarked
package io.gpunvme.tools.topology;

import org.jspecify.annotations.NullMarked;
