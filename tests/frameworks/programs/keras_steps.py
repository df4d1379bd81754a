"""What a step of a distributed optimizer does with gradients, and what cannot be together."""
from keras_problem import *

MEAN = (SIZE - 1) / 2
if BACKEND == "tensorflow":
    import tensorflow as tf

    devices = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(devices[0], [tf.config.LogicalDeviceConfiguration()] * 2)


def variable(start=0.0):
    if IS_KERAS_3:
        return keras.Variable(np.full(2, start, dtype=np.float32))
    return tf.Variable(np.full(2, start, dtype=np.float32))


def step(optimizer, gradients, variables):
    """One step with numbers for gradients."""
    if BACKEND == "jax":
        if not optimizer.built:
            optimizer.build(variables)
        gradients = [keras.ops.full((2,), gradient) for gradient in gradients]
        values = [[one.value for one in some] for some in (optimizer.variables, variables)]
        moved, state = optimizer.stateless_apply(values[0], gradients, values[1])
        for one, new in zip([*variables, *optimizer.variables], [*moved, *state]):
            one.assign(new)
    elif IS_KERAS_3:
        optimizer.apply([keras.ops.full((2,), gradient) for gradient in gradients], variables)
    else:
        loss = lambda: tf.add_n([tf.reduce_sum(one * gradient) for one, gradient in zip(variables, gradients)])
        optimizer.minimize(loss, variables)


def sgd(**options):
    return keras.optimizers.SGD(1.0, **options)


# Sums of passes.
for average in (False, True):
    one, factor = variable(), 0.5 if average else 1.0
    # Clipped, as the velocities of Keras 2 do not recover from what is infinite.
    optimizer = hvd.DistributedOptimizer(
        sgd(clipvalue=100.0), backward_passes_per_step=2, average_aggregated_gradients=average)
    step(optimizer, [float(RANK)], [one])
    expect_near(value(one), [0, 0], "the variable after the first pass")
    step(optimizer, [float(RANK) + 2], [one])
    expect_near(value(one), [-factor * (2 * MEAN + 2)] * 2, "the variable after the last pass")
    # Before 3.5, Keras counts passes.
    steps = 1 if hasattr(optimizer, "_iterations") and IS_KERAS_3 else 2
    expect(int(value(optimizer.iterations)) == steps, "passes are counted otherwise than by Keras")
    # What is infinite is in one sum, and not in the next.
    before = value(one)
    for gradient in (float("inf"), 1.0):
        step(optimizer, [gradient], [one])
    one.assign(before)
    for gradient in (1.0, 1.0):
        step(optimizer, [gradient], [one])
    expect_near(value(one), before - 2 * factor, "the variable after an infinite sum")

# Keras's own sums are combined once; before Keras 3.5, each pass is.
if IS_KERAS_3:
    calls = []
    one, optimizer = variable(), hvd.DistributedOptimizer(sgd(gradient_accumulation_steps=3))
    combined = optimizer._ddl.combined
    optimizer._ddl.combined = lambda *arguments: calls.append(1) or combined(*arguments)
    for gradient in (3.0, 6.0, 3.0 * RANK):
        step(optimizer, [gradient], [one])
    expect_near(value(one), [-(3 + MEAN)] * 2, "the variable after three passes")
    times = 1 if hasattr(optimizer, "_iterations") else 3
    expect(BACKEND == "jax" or len(calls) == times, f"gradients were combined {len(calls)} times")
    expect_error(ValueError, "gradient_accumulation_steps", hvd.DistributedOptimizer,
                 sgd(gradient_accumulation_steps=3), backward_passes_per_step=2)

# Before they are clipped.
one = variable()
step(hvd.DistributedOptimizer(sgd(clipvalue=1.0)), [4.0 * SIZE if RANK == 0 else 0.0], [one])
expect_near(value(one), [-1, -1], "a clipped mean")

# Local variables.
shared, local = variable(), variable()
optimizer = hvd.DistributedOptimizer(sgd())
optimizer.register_local_var(local)
step(optimizer, [float(RANK), float(RANK)], [shared, local])
expect_near(value(shared), [-MEAN] * 2, "the shared variable")
expect_near(value(local), [-RANK / SIZE] * 2, "the local variable")

# An infinite gradient of one rank: no rank takes the step.
lower = -RANK if RANK < SIZE - 1 else -float("inf")
if IS_KERAS_3:
    keras.config.set_dtype_policy("mixed_float16")
    optimizer = hvd.DistributedOptimizer(sgd())
    keras.config.set_dtype_policy("float32")
    expect(isinstance(optimizer, keras.optimizers.LossScaleOptimizer), "no LossScaleOptimizer has been made")
    one = variable()
    step(optimizer, [lower], [one])
    expect_near(value(one), [0, 0], "the variable after an infinite gradient")
    expect_near(value(optimizer.dynamic_scale), 2.0**14, "the scale")
    step(optimizer, [2.0**14 * RANK], [one])
    expect_near(value(one), [-MEAN] * 2, "the variable after a finite one")
    if tuple(map(int, keras.__version__.split(".")[:2])) >= (3, 10):  # older ones do not touch the optimizer
        expect_error(ValueError, "mixed_float16", keras.optimizers.LossScaleOptimizer,
                     hvd.DistributedOptimizer(sgd()))
    expect_error(ValueError, "already", hvd.DistributedOptimizer, optimizer)
else:
    for made in (hvd.DistributedOptimizer(keras.mixed_precision.LossScaleOptimizer(sgd())),
                 keras.mixed_precision.LossScaleOptimizer(hvd.DistributedOptimizer(sgd()))):
        one = variable()
        step(made, [lower], [one])
        expect_near(value(one), [0, 0], "the variable after an infinite gradient")
        expect_near(value(made.loss_scale), 2.0**14, "the scale")
        step(made, [float(RANK)], [one])
        expect_near(value(one), [-MEAN] * 2, "the variable after a finite one")
        expect_error(ValueError, "already", hvd.DistributedOptimizer, made)
    one = variable()
    legacy = hvd.DistributedOptimizer(keras.optimizers.legacy.SGD(1.0))
    step(legacy, [float(RANK)], [one])
    expect_near(value(one), [-MEAN] * 2, "the variable after a step of a legacy optimizer")

expect_error(ValueError, "op is", hvd.DistributedOptimizer, sgd(), op=hvd.Adasum)
expect_error(ValueError, "local_layers", hvd.PartialDistributedOptimizer, sgd(), local_layers=[3])
model = net()
partial = hvd.PartialDistributedOptimizer(sgd(), local_layers=model.layers[0])
reduction = partial._ddl._reduction
expect(len(reduction._local) == 2, "a layer's variables are not local")

if BACKEND == "tensorflow":
    import ddl.tensorflow

    one = tf.Variable([1.0, 1.0])
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        expect_error(ValueError, "2 replicas", hvd.DistributedOptimizer, sgd())
    with tf.Graph().as_default():
        weight = tf.compat.v1.get_variable("weight", initializer=[float(RANK)])
        if IS_KERAS_3:
            expect_error(RuntimeError, "Keras 3 has no session", hvd.broadcast_global_variables, 0)
        else:
            session = tf.compat.v1.keras.backend.get_session()
            session.run(tf.compat.v1.global_variables_initializer())
            hvd.broadcast_global_variables(SIZE - 1)
            expect_near(session.run(weight), [SIZE - 1], "a global variable")
if BACKEND == "tensorflow" and not IS_KERAS_3:
    with ddl.tensorflow.DistributedGradientTape(tf.GradientTape()) as tape:
        loss = tf.reduce_sum(one * RANK)
    expect_error(ValueError, "not both", hvd.DistributedOptimizer(sgd()).minimize, loss, [one], tape=tape)
if BACKEND == "tensorflow" and IS_KERAS_3:
    clip_each = lambda gradients: [tf.clip_by_norm(gradient, 1.0) for gradient in gradients]
    clip_together = lambda gradients: tf.clip_by_global_norm(gradients, 1.0)[0]

    optimizer = hvd.DistributedOptimizer(sgd())

    def step_of_both(clip):
        with ddl.tensorflow.DistributedGradientTape(tf.GradientTape()) as tape:
            loss = tf.reduce_sum(one * RANK)
        optimizer.apply(clip(tape.gradient(loss, [one])), [one])

    expect_error(ValueError, "not both", step_of_both, list)
    for clip in (list, clip_each, clip_together):  # clipping can be seen through in a function alone
        expect_error(ValueError, "not both", tf.function(step_of_both), clip)

    # With GPUs, Keras would choose XLA.
    devices = tf.config.list_physical_devices
    gpu = tf.config.PhysicalDevice("/physical_device:GPU:0", "GPU")
    tf.config.list_physical_devices = lambda kind=None: devices(kind) + ([gpu] if kind in (None, "GPU") else [])
    for optimizer, chosen in ((sgd(), True), (hvd.DistributedOptimizer(sgd()), False)):
        model = net()
        model.compile(optimizer, "mse")
        expect(model.jit_compile is chosen, f"jit_compile is {model.jit_compile}")
    tf.config.list_physical_devices = devices
if BACKEND == "tensorflow":
    model = net()
    model.compile(hvd.DistributedOptimizer(sgd()), "mse", jit_compile=True)
    expect_error(ValueError, "jit_compile=False", model.fit, share(INPUTS), share(TARGETS), verbose=0)
report()
