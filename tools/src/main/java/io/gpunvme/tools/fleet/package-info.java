/**
 * How long many machines need to load a model and to write checkpoints: a small event simulation of
 * bytes that flow over shared links, its parameters with their sources, and a plot.
 *
 * <p>In: arithmetic about machines that need not exist. Out: reading or measuring this machine
 * ({@code machine}, {@code topology}, {@code bench}).
 */
@NullMarked
package io.gpunvme.tools.fleet;

import org.jspecify.annotations.NullMarked;
