from ddl.keras.elastic import *
