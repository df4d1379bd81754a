from ddl.tensorflow.keras.elastic import *
