from ddl.tensorflow.keras.callbacks import *
